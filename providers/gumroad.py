"""Gumroad proves nothing: a secret at the end of the URL tells its pings from others.

A source whose URL has a token in its query instead says `in = "query:token"`. Bodies are forms. A sale is known by
its `sale_id`; what happens to it later (`refund`, `dispute`, `cancellation`) by all that is said of it, so two
refunds of one sale that are alike are one event. The type is `resource_name`. A ping is tried again once an hour,
for three hours, unless the answer is 200.

https://gumroad.com/ping
"""

from hookonce.providers import kit

_kind = kit.first("$.resource_name", kit.fixed("sale"))
events = kit.one_event(
    id=kit.first(kit.when_matches(_kind, "sale", "$.sale_id"), kit.data_digest()),
    type=_kind,
    account="$.seller_id",
    occurred_at="$.sale_timestamp",
    read=kit.form_body,
)
configure = kit.token_sender(
    "gumroad",
    "path",
    events=events,
    wrap=lambda sign: kit.signer(sign, content=kit.FORM),
    sender=kit.Sender(
        id_is_signed=False,
        retry_horizon=kit.days(1),
        identity=kit.told_apart_by(
            "$.sale_id",
            "$.subscription_id",
            "body",
            because="what is no sale names the sale or subscription and what became of it",
        ),
        mode=kit.mode("$.test", live=("false",), absent="live"),
        setup_url="https://gumroad.com/settings/advanced",
    ),
)
