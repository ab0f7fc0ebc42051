"""Google's push channels (Drive, Calendar, Directory) bring the token a channel was made with, and usually no body.

Everything is in `X-Goog-` headers: the id is the channel's with the number of its message, the type what
became of the resource. A new channel says `sync` first, which is an event too. Channels end. Failed
deliveries (500 to 504) are tried again. The event's data is what the headers say, if there is no body.

https://developers.google.com/workspace/drive/api/guides/push
"""

from datetime import datetime
from typing import Any, Unpack

from hookonce.providers import Delivery, kit

scheme = kit.Token(header="x-goog-channel-token")
_PREFIX = "x-goog-"


def _read(delivery: Delivery) -> Any:  # noqa: ANN401  whatever Google sent
    if delivery.body:
        return kit.any_body(delivery)
    sent = {name: value for name, value in delivery.headers.items() if name.startswith(_PREFIX)}
    return {name: value for name, value in sent.items() if name != scheme.header}


events = kit.one_event(
    id=kit.join("header x-goog-channel-id", "header x-goog-message-number"),
    type="header x-goog-resource-state",
    account="header x-goog-channel-id",
    read=_read,
)


def sign(body: bytes, secret: str, now: datetime, **options: Unpack[kit.SignOptions]) -> dict[str, str]:
    """Return the delivery that Google would send. Raises: ValueError for a blank secret."""
    return {
        **scheme.sign(body, secret, now),
        "x-goog-channel-id": options.get("event_id") or kit.made_id(body),
        "x-goog-message-number": "1",
        "x-goog-resource-state": options.get("type") or "sync",
    }


sender = kit.Sender(
    scheme=scheme,
    id_is_signed=False,
    retry_horizon="it tries 500 to 504 again for as long as the channel lives, and names no end",
    identity=kit.told_apart_by("header x-goog-channel-id + header x-goog-message-number"),
    setup_url="https://developers.google.com/workspace/drive/api/guides/push",
)
