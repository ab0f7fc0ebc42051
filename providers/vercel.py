"""Vercel signs the body with HMAC-SHA1 (not SHA-256), in hex.

The key is the webhook's secret, for an integration its client secret. The id is `$.id`, the account the team,
or the user of a personal account. A log drain sends lists, or JSON lines, without these fields: each is one event
of type `unknown`, known by its fingerprint.

https://vercel.com/docs/webhooks/webhooks-api
"""

from hookonce.providers import kit

events = kit.one_event(
    id=kit.or_body("$.id"),
    type=kit.or_unknown("$.type"),
    account=kit.first("$.payload.team.id", "$.payload.user.id"),
    occurred_at="$.createdAt",
    read=kit.any_body_or_none,
)
sender = kit.Sender(
    scheme=kit.Hmac(header="x-vercel-signature", hash="sha1"),
    id_is_signed=True,
    retry_horizon=kit.days(2),
    identity=kit.told_apart_by("$.id"),
    setup_url="https://vercel.com/dashboard/settings/webhooks",
)
