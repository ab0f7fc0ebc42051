"""Vercel signs the body with HMAC-SHA1 (not SHA-256), in hex.

The key is the webhook's secret, for an integration its client secret. The id is `$.id`, the account the team,
or the user of a personal account. A log drain sends lists, or JSON lines, without these fields: each is one event
of type `unknown`, known by its fingerprint.

https://vercel.com/docs/webhooks/webhooks-api
"""

from datetime import timedelta

from hookonce.providers.kit import (
    Hmac,
    Sender,
    any_body_or_none,
    body_digest,
    field,
    first,
    fixed,
    one_event,
    signer,
    told_apart_by,
)

scheme = Hmac(header="x-vercel-signature", hash="sha1")
verify = scheme.verify
sign = signer(scheme.sign)
events = one_event(
    id=first(field("$.id"), body_digest()),
    type=first(field("$.type"), fixed("unknown")),
    account=first(field("$.payload.team.id"), field("$.payload.user.id")),
    occurred_at=field("$.createdAt"),
    read=any_body_or_none,
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(days=2),
    identity=told_apart_by("$.id"),
    check_secret=scheme.check_secret,
    setup_url="https://vercel.com/dashboard/settings/webhooks",
)
