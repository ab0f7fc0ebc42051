"""Shortcut (once Clubhouse) signs the body with HMAC-SHA256, in hex, if its webhook has a secret.

The id is `$.id`; the type is what was done to what, of the first of the actions (`story.update`).

https://developer.shortcut.com/api/webhook/v1
"""

from hookonce.providers.kit import (
    Hmac,
    Sender,
    body_digest,
    field,
    first,
    fixed,
    join,
    one_event,
    signer,
    told_apart_by,
)

scheme = Hmac(header="payload-signature")
verify = scheme.verify
sign = signer(scheme.sign)
events = one_event(
    id=first(field("$.id"), body_digest()),
    type=first(
        join(field("$.actions[0].entity_type"), field("$.actions[0].action"), by="."), fixed("unknown")
    ),
    account=field("$.member_id"),
    occurred_at=field("$.changed_at"),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=None,
    horizon_unknown="not known: no statement of its own is at hand",
    identity=told_apart_by("$.id"),
    check_secret=scheme.check_secret,
    setup_url="https://app.shortcut.com/settings/integrations/outgoing-webhook",
)
