"""Viber signs the body with HMAC-SHA256, in hex; the key is the bot's authentication token.

There is no id of the event: it is made of kind, `message_token` and user, since a message that is delivered and seen
keeps its token. A new URL gets a signed event `webhook`, which wants a 200: the source has to be there before
set_webhook is called. The answer to `conversation_started`, a welcome, is not sent from here.

https://developers.viber.com/docs/api/rest-bot-api/#callbacks
"""

from hookonce.providers import kit

_kind, _token = kit.field("$.event"), kit.field("$.message_token")
_user = kit.first("$.user_id", "$.sender.id", "$.user.id")
events = kit.one_event(
    id=kit.or_body(kit.join(_kind, _token, _user), kit.join(_kind, _token)),
    type=kit.or_unknown(_kind),
    account=_user,
    occurred_at="$.timestamp",
)
sender = kit.Sender(
    scheme=kit.Hmac(header="x-viber-content-signature"),
    id_is_signed=True,
    retry_horizon="unknown (no vendor documentation found)",
    identity=kit.told_apart_by("$.event + $.message_token"),
    setup_url="https://partners.viber.com/",
)
