"""Snyk signs the body with HMAC-SHA256, hex behind `sha256=`, in `X-Hub-Signature`.

The header's name is the one that elsewhere holds SHA-1. The id is `X-Snyk-Transport-ID`, the type `X-Snyk-Event`
(`project_snapshot/v0`; `ping/v0` when a webhook is made); neither they nor `X-Snyk-Timestamp` are signed. The
account is the organisation.

https://docs.snyk.io/snyk-api/snyk-webhooks
"""

from datetime import timedelta

from hookonce.providers.kit import (
    Hmac,
    Sender,
    body_digest,
    field,
    first,
    fixed,
    header,
    one_event,
    signer,
    told_apart_by,
)

scheme = Hmac(header="x-hub-signature", prefix="sha256=")
verify = scheme.verify
sign = signer(scheme.sign, event_id="x-snyk-transport-id", type="x-snyk-event", default_type="ping/v0")
events = one_event(
    id=first(header("x-snyk-transport-id"), body_digest()),
    type=first(header("x-snyk-event"), fixed("unknown")),
    account=field("$.org.id"),
    occurred_at=header("x-snyk-timestamp"),
)

sender = Sender(
    id_is_signed=False,
    retry_horizon=timedelta(days=1),
    identity=told_apart_by("header x-snyk-transport-id"),
    check_secret=scheme.check_secret,
    setup_url="https://docs.snyk.io/snyk-api/snyk-webhooks",
)
