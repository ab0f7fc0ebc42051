"""Strapi brings the headers that its webhook is given, a bearer token as a rule, and signs nothing.

Another header is `in = "header:X-Token"`. There is no id: an event is its body, with `$.createdAt`, the millisecond
at which it was made (`webhook-runner`). It is sent once and not tried again. Accounts are not told; media and
entries have their own ids.

https://docs.strapi.io/cms/backend-customization/webhooks
"""

from datetime import timedelta

from hookonce.providers.kit import (
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
from hookonce.providers.kit.registry.token_sender import token_sender

_TYPE = "x-strapi-event"
events = one_event(
    id=body_digest(),
    type=first(field("$.event"), header(_TYPE), fixed("unknown")),
    occurred_at=field("$.createdAt"),
)
configure = token_sender(
    "strapi",
    "bearer",
    events=events,
    wrap=lambda sign: signer(sign, type=_TYPE, default_type="entry.create"),
    sender=Sender(
        id_is_signed=False,
        body_is_unsigned=True,
        retry_horizon=timedelta(hours=1),
        identity=told_apart_by(
            "$.createdAt", "body", because="every body has the millisecond at which it was made"
        ),
        setup_url="https://docs.strapi.io/cms/backend-customization/webhooks",
    ),
)
