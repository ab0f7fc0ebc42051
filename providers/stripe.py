"""Stripe signs `<t>.<body>` with HMAC-SHA256 and puts the time and every signature into one header.

While a secret is rolled there are several `v1=`, one per secret; `v0=` is a test scheme and means nothing.
The whole secret is the key, `whsec_` included, unlike in Standard Webhooks where the prefix comes off. Each
endpoint and the CLI have secrets of their own. The id is `$.id`, the same on every retry;
`$.pending_webhooks` is not. Retries go on for three days. Thin (v2) events have `$.context` where others have
`$.account`. Two events may tell of one change. Tests of old versions have one id, `evt_00000000000000`, whatever their
type, which is then a part of it.

https://docs.stripe.com/webhooks/signature
"""

from dataclasses import replace

from hookonce.providers import kit

scheme = kit.Hmac(
    header="stripe-signature", key="v1", signed="{timestamp}.{body}", timestamp=kit.Timestamp(key="t")
)
events = kit.one_event(
    id=replace(
        kit.first(kit.when_matches("$.id", "evt_0{14}", kit.join("$.id", "$.type")), "$.id"), where="$.id"
    ),
    type="$.type",
    account=kit.first("$.account", "$.context"),
    occurred_at="$.created",
)


def check_secret(secret: str) -> None:
    """Raises: ValueError for what is certainly another thing: an API key, pasted by mistake."""
    scheme.check_secret(secret)
    if secret.startswith(("sk_", "pk_", "rk_")):
        msg = "the secret is an API key of Stripe's; expected the endpoint's signing secret, 'whsec_...'"
        raise ValueError(msg)


sender = kit.Sender(
    scheme=scheme,
    id_is_signed=True,
    retry_horizon=kit.days(3),
    retries_on=kit.UNSUCCESSFUL,
    disables_after="days of failures",
    identity=kit.told_apart_by(
        "$.id", new_on_retry=("signed time",), known_from="https://docs.stripe.com/webhooks/signature"
    ),
    volatile=("$.pending_webhooks",),
    mode=kit.mode("$.livemode", live=(True,)),
    subject=kit.about(entity=("$.data.object.object", "$.data.object.id"), version="$.created", unit="s"),
    setup_url="https://dashboard.stripe.com/webhooks",
)
