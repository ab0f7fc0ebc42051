"""CircleCI signs the body with HMAC-SHA256, in hex, as `v1=` in a list of versions.

Versions that we don't know are passed over. The id is `$.id`, the same when CircleCI tries again. A test sends
the type `ping`.

https://circleci.com/docs/outbound-webhooks/
"""

from datetime import timedelta

from providers.kit import Hmac, any_body, body_digest, field, first, fixed, header, one_event, signer

scheme = Hmac(header="circleci-signature", key="v1")
verify, CHECK = scheme.verify, scheme.check_secret
sign = signer(scheme.sign, type="circleci-event-type")
events = one_event(
    id=first(field("$.id"), body_digest()),
    type=first(field("$.type"), header("circleci-event-type"), fixed("unknown")),
    account=first(field("$.organization.id"), field("$.project.id")),
    occurred_at=field("$.happened_at"),
    read=any_body,
)
RETRY_HORIZON = timedelta(days=1)
SETUP = "https://circleci.com/docs/outbound-webhooks/"
