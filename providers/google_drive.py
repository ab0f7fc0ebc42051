"""Google's push channels (Drive, Calendar, Directory) bring the token a channel was made with, and usually no body.

Everything is in `X-Goog-` headers: the id is the channel's with the number of its message, the type what
became of the resource. A new channel says `sync` first, which is an event too. Channels end. Failed
deliveries (500 to 504) are tried again. The event's data is what the headers say, if there is no body.

https://developers.google.com/workspace/drive/api/guides/push
"""

from datetime import datetime
from typing import Any, Unpack

from providers import Delivery
from providers.kit import Said, Token, any_body, header, joined, made_id, one_event

scheme = Token(header="x-goog-channel-token")
verify, CHECK = scheme.verify, scheme.check_secret
_PREFIX = "x-goog-"


def _read(delivery: Delivery) -> Any:  # noqa: ANN401  whatever Google sent
    if delivery.body:
        return any_body(delivery)
    sent = {name: value for name, value in delivery.headers.items() if name.startswith(_PREFIX)}
    return {name: value for name, value in sent.items() if name != scheme.header}


events = one_event(
    id=joined(header("x-goog-channel-id"), header("x-goog-message-number")),
    type=header("x-goog-resource-state"),
    account=header("x-goog-channel-id"),
    read=_read,
)
ID_IS_SIGNED = False
BODY_IS_UNSIGNED = True
SETUP = "https://developers.google.com/workspace/drive/api/guides/push"


def sign(body: bytes, secret: str, now: datetime, **said: Unpack[Said]) -> dict[str, str]:
    """What Google would send. Raises: ValueError for a blank secret."""
    return {
        **scheme.sign(body, secret, now),
        "x-goog-channel-id": said.get("event_id") or made_id(body),
        "x-goog-message-number": "1",
        "x-goog-resource-state": said.get("type") or "sync",
    }
