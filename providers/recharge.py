"""Recharge signs `<t>.<body>` with HMAC-SHA256, in hex, in a header like `t=1767225600,v1=…`.

The key is the client secret of the API token, not the token. Every delivery has an older header besides, a SHA-256
of secret and body without a time; option `versions` takes it where nothing else is sent: `"any"`, for what was
recorded before. The time may be off by 48 hours, as Recharge has it: for so long a webhook is tried again, up to 20
times. There is no id, and no topic in the body: the header of the topic, not signed and not always sent, goes into
the id. Without it two topics about the same charge may bring the same bytes, so give each topic its own source.

https://developer.rechargepayments.com/2021-11/webhooks_overview
"""

from collections.abc import Sequence
from datetime import datetime
from hashlib import sha256

from hookonce.providers import Delivery, Reason, Rejected, kit

_TOPIC = "x-recharge-topic"
_OLD = "x-recharge-hmac-sha256"
_hex = kit.speller("hex", 32)
scheme = kit.Hmac(
    header="x-recharge-webhook-signature",
    key="v1",
    signed="{timestamp}.{body}",
    timestamp=kit.Timestamp(key="t", tolerance=kit.hours(48)),
)


def _resource(view: kit.EventView) -> object:
    """The name of what the body holds."""
    return next(iter(view.data), None) if isinstance(view.data, dict) else None


def _changed(view: kit.EventView) -> object:
    held = view.data.get(_resource(view)) if isinstance(view.data, dict) else None
    return held.get("updated_at") if isinstance(held, dict) else None


events = kit.one_event(
    id=kit.or_body(kit.join(kit.header(_TOPIC), kit.body_digest())),
    type=kit.or_unknown(kit.header(_TOPIC), kit.Extractor(_resource, "the name of what the body holds")),
    occurred_at=kit.Extractor(_changed, "updated_at of what the body holds"),
)


def _verify_any(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` if one of its two signatures is right, the timed one if it was sent. Raises: Rejected."""
    if scheme.header in delivery.headers:
        scheme.verify(delivery, secrets, now)
        return
    keys = kit.keys_of(secrets, "raw")
    given = _hex.fold(kit.header_of(delivery.headers, (_OLD,))[1])
    if given is None:
        raise Rejected(Reason.BAD_HEADER, f"header {_OLD} holds no digest in hex")
    kit.expect_match([given], (_hex.folded(sha256(key + delivery.body).digest()) for key in keys))


@kit.with_options("recharge")
def configure(given: kit.Options) -> kit.Configured:
    """Make the provider with a source's options."""
    versions = given.choice("versions", ("timed", "any"))
    return kit.Configured(
        verify=scheme.verify if versions == "timed" else _verify_any,
        events=events,
        sign=kit.signer(scheme.sign, type=_TOPIC, default_type="charge/paid"),
        sender=kit.Sender(
            id_is_signed=False,
            runs_repeats="two topics about one charge may bring one body, and the topic is not signed",
            body_is_unsigned=False,
            retry_horizon=kit.days(3),
            identity=kit.told_apart_by(
                f"header {_TOPIC} + body",
                "body",
                because="the body says when its charge, order or subscription was changed",
            ),
            tolerance=scheme.tolerance,
            check_secret=scheme.check_secret,
            setup_url="https://developer.rechargepayments.com/2021-11/webhooks_endpoints",
        ),
    )
