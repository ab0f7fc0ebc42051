"""Viber signs the body with HMAC-SHA256, in hex; the key is the bot's authentication token.

There is no id of the event: kind, `message_token` and user are it, since a message that is delivered and seen keeps
its token. A new URL gets a signed event `webhook`, which wants a 200: the source has to be there before set_webhook
is called. The answer to `conversation_started`, a welcome, is not sent from here.

https://developers.viber.com/docs/api/rest-bot-api/#callbacks
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

scheme = Hmac(header="x-viber-content-signature")
verify = scheme.verify
sign = signer(scheme.sign)
_kind, _token = field("$.event"), field("$.message_token")
_user = first(field("$.user_id"), field("$.sender.id"), field("$.user.id"))
events = one_event(
    id=first(join(_kind, _token, _user), join(_kind, _token), body_digest()),
    type=first(_kind, fixed("unknown")),
    account=_user,
    occurred_at=field("$.timestamp"),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=None,
    horizon_unknown="not known: no statement of its own is at hand",
    identity=told_apart_by("$.event + $.message_token"),
    check_secret=scheme.check_secret,
    setup_url="https://partners.viber.com/",
)
