"""CircleCI signs the body with HMAC-SHA256, in hex, as `v1=` in a list of versions.

Versions that we don't know are passed over. The id is `$.id`, the same when CircleCI tries again. A test sends
the type `ping`.

https://circleci.com/docs/outbound-webhooks/
"""

from datetime import timedelta

from hookonce.providers.kit import (
    Hmac,
    Sender,
    any_body,
    body_digest,
    field,
    first,
    fixed,
    header,
    one_event,
    signer,
    told_apart_by,
)

scheme = Hmac(header="circleci-signature", key="v1")
verify = scheme.verify
sign = signer(scheme.sign, type="circleci-event-type")
events = one_event(
    id=first(field("$.id"), body_digest()),
    type=first(field("$.type"), header("circleci-event-type"), fixed("unknown")),
    account=first(field("$.organization.id"), field("$.project.id")),
    occurred_at=field("$.happened_at"),
    read=any_body,
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(days=1),
    identity=told_apart_by(
        "$.id", "body", because="every event has an id; the bodies of the page on signatures are no events"
    ),
    check_secret=scheme.check_secret,
    setup_url="https://circleci.com/docs/outbound-webhooks/",
)
