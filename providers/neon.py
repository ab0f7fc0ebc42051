"""Neon Auth sends a detached token (JWS, EdDSA) in `X-Neon-Signature`, of `<time>.<body in base64url>`.

The token's payload is that text, in base64url again. The option `jwks` is the URL of the key set of your Neon Auth
(`…/.well-known/jwks.json`), of which `X-Neon-Signature-Kid` names a key, and a source needs no secret then; or the
secret is the key itself (PEM, a JWK or a JWK set). The time is `X-Neon-Timestamp`, in milliseconds. The id is
`$.event_id`, the same on the three attempts, which follow at once. `user.before_create` wants an answer in JSON, which
an inbox can't give: leave it out of the events that are sent here.

https://neon.com/docs/auth/guides/webhooks
"""

from base64 import urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Unpack

from hookonce.providers import Delivery, Reason, Rejected, kit

_SIGNATURE: Final = "x-neon-signature"
_KEY_ID: Final = "x-neon-signature-kid"
_TIME: Final = kit.Timestamp(header="x-neon-timestamp", unit="ms")
events = kit.one_event(
    id="$.event_id", type="$.event_type", account="$.context.endpoint_id", occurred_at="$.timestamp"
)


@dataclass(frozen=True, eq=False)
class _Scheme:
    """The scheme with the URL of a key set, if there is one."""

    jwks: str
    signs_body: bool = True
    tolerance: timedelta | None = _TIME.tolerance
    key_algorithm: kit.public_keys.Algorithm = "ed25519"

    def verify(
        self, delivery: Delivery, secrets: Sequence[str], now: datetime, keys: kit.Documents = None
    ) -> None:
        """Accept `delivery` if a key of `secrets`, or of the set, signed it. Raises: Rejected, KeyNeeded."""
        source = kit.jws.KeySource(secrets, self.jwks, keys)
        source.expect_usable(("EdDSA",))
        sent = delivery.headers
        for name in (_SIGNATURE, _TIME.header):
            if name not in sent:
                raise Rejected(Reason.MISSING_HEADER, f"header {name} is missing")
        stamp = sent[_TIME.header]
        token = kit.jws.read_detached(
            sent[_SIGNATURE], _payload(stamp, delivery.body), f"header {_SIGNATURE}"
        )
        seconds = _TIME.parse(stamp)
        known = kit.jws.known_keys(source, sent.get(_KEY_ID), "EdDSA")
        kit.jws.expect_authentic(token, known, ("EdDSA",))
        _TIME.check(seconds, now)

    def sign(
        self, body: bytes, secret: str, now: datetime, **options: Unpack[kit.SignOptions]
    ) -> dict[str, str]:
        """Return what Neon would send. Raises: ValueError unless `secret` is a private key."""
        del options
        stamp = _TIME.write(now)
        token = kit.jws.make_detached(_payload(stamp, body), secret, "EdDSA", {"typ": "JWS"})
        return {_SIGNATURE: token, _TIME.header: stamp}

    def check_secret(self, secret: str) -> None:
        """Raises: ValueError with what a key looks like."""
        kit.jws.expect_keys(secret, ("EdDSA",))


@kit.with_options("neon")
def configure(given: kit.Options) -> kit.Configured:
    """Make the provider for a key set."""
    scheme = _Scheme(kit.declared_options.https_url(given, "jwks"))
    return kit.Configured(
        events=events,
        sender=kit.Sender(
            scheme=scheme,
            id_is_signed=True,
            retry_horizon=timedelta(seconds=15),
            retries_on=(*kit.SERVER_ERRORS, 408, 429),
            identity=kit.told_apart_by("$.event_id"),
            setup_url="https://console.neon.tech/",
        ),
    )


def _payload(stamp: str, body: bytes) -> bytes:
    return stamp.encode("latin-1", "replace") + b"." + urlsafe_b64encode(body).rstrip(b"=")
