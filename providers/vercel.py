"""Vercel signs the body with HMAC-SHA1 (not SHA-256), in hex.

The key is the webhook's secret, for an integration its client secret. The id is `$.id`, the account the team,
or the user of a personal account. Log drains are another thing: lists without these fields, not taken here.

https://vercel.com/docs/webhooks/webhooks-api
"""

from datetime import timedelta

from providers.kit import Hmac, field, first, one_event, signer

scheme = Hmac(header="x-vercel-signature", hash="sha1")
verify, sign, CHECK = scheme.verify, signer(scheme.sign), scheme.check_secret
events = one_event(
    id=field("$.id"),
    type=field("$.type"),
    account=first(field("$.payload.team.id"), field("$.payload.user.id")),
    occurred_at=field("$.createdAt"),
)
RETRY_HORIZON = timedelta(days=2)
SETUP = "https://vercel.com/dashboard/settings/webhooks"
