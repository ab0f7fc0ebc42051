"""Gumroad proves nothing: a secret at the end of the URL tells its pings from others.

A source whose URL has a token in its query instead says `in = "query:token"`. Bodies are forms. A sale is known by
its `sale_id`; what happens to it later (`refund`, `dispute`, `cancellation`) by all that is said of it, so two
refunds of one sale that are alike are one event. The type is `resource_name`. A ping is tried again once an hour,
for three hours, unless the answer is 200.

https://gumroad.com/ping
"""

from datetime import timedelta

from hookonce.providers.kit import (
    FORM,
    Sender,
    data_digest,
    field,
    first,
    fixed,
    form_body,
    one_event,
    signer,
    told_apart_by,
    when_matches,
)
from hookonce.providers.kit.registry.token_sender import token_sender

_kind = first(field("$.resource_name"), fixed("sale"))
events = one_event(
    id=first(when_matches(_kind, "sale", field("$.sale_id")), data_digest()),
    type=_kind,
    account=field("$.seller_id"),
    occurred_at=field("$.sale_timestamp"),
    read=form_body,
)
configure = token_sender(
    "gumroad",
    "path",
    events=events,
    wrap=lambda sign: signer(sign, content=FORM),
    sender=Sender(
        id_is_signed=False,
        body_is_unsigned=True,
        retry_horizon=timedelta(days=1),
        identity=told_apart_by(
            "$.sale_id",
            "$.subscription_id",
            "body",
            because="what is no sale names the sale or subscription and what became of it",
        ),
        setup_url="https://gumroad.com/settings/advanced",
    ),
)
