"""Snyk signs the body with HMAC-SHA256, hex behind `sha256=`, in `X-Hub-Signature`.

The header's name is the one that elsewhere holds SHA-1. The id is `X-Snyk-Transport-ID`, the type `X-Snyk-Event`
(`project_snapshot/v0`; `ping/v0` when a webhook is made); neither they nor `X-Snyk-Timestamp` are signed. The
account is the organisation.

https://docs.snyk.io/snyk-api/snyk-webhooks
"""

from hookonce.providers import kit

scheme = kit.Hmac(header="x-hub-signature", prefix="sha256=")
sign = kit.signer(scheme.sign, event_id="x-snyk-transport-id", type="x-snyk-event", default_type="ping/v0")
events = kit.one_event(
    id=kit.or_body("header x-snyk-transport-id"),
    type=kit.or_unknown("header x-snyk-event"),
    account="$.org.id",
    occurred_at="header x-snyk-timestamp",
)
sender = kit.Sender(
    scheme=scheme,
    id_is_signed=False,
    runs_repeats="a project that is tested twice without a finding may bring one body",
    retry_horizon=kit.days(1),
    identity=kit.told_apart_by("header x-snyk-transport-id"),
    setup_url="https://docs.snyk.io/snyk-api/snyk-webhooks",
)
