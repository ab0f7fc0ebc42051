"""CircleCI signs the body with HMAC-SHA256, in hex, as `v1=` in a list of versions.

Versions that we don't know are passed over. The id is `$.id`, the same when CircleCI tries again. A test sends
the type `ping`.

https://circleci.com/docs/outbound-webhooks/
"""

from hookonce.providers import kit

scheme = kit.Hmac(header="circleci-signature", key="v1")
sign = kit.signer(scheme.sign, type="circleci-event-type")
events = kit.one_event(
    id=kit.or_body("$.id"),
    type=kit.or_unknown("$.type", "header circleci-event-type"),
    account=kit.first("$.organization.id", "$.project.id"),
    occurred_at="$.happened_at",
    read=kit.any_body,
)
sender = kit.Sender(
    scheme=scheme,
    id_is_signed=True,
    retry_horizon="it tries again, and its page names no times",
    identity=kit.told_apart_by(
        "$.id", "body", because="every event has an id; the bodies of the page on signatures are no events"
    ),
    setup_url="https://circleci.com/docs/outbound-webhooks/",
)
