"""Vercel signs the body with HMAC-SHA1 (not SHA-256), in hex.

The key is the webhook's secret, for an integration its client secret. The id is `$.id`, the account the team,
or the user of a personal account. A log drain sends lists, or JSON lines, without these fields: each is one event
of type `unknown`, known by its fingerprint.

https://vercel.com/docs/webhooks/webhooks-api
"""

from datetime import timedelta

from providers.kit import Hmac, any_body_or_none, body_digest, field, first, fixed, one_event, signer

scheme = Hmac(header="x-vercel-signature", hash="sha1")
verify, sign, CHECK = scheme.verify, signer(scheme.sign), scheme.check_secret
events = one_event(
    id=first(field("$.id"), body_digest()),
    type=first(field("$.type"), fixed("unknown")),
    account=first(field("$.payload.team.id"), field("$.payload.user.id")),
    occurred_at=field("$.createdAt"),
    read=any_body_or_none,
)
RETRY_HORIZON = timedelta(days=2)
SETUP = "https://vercel.com/dashboard/settings/webhooks"
