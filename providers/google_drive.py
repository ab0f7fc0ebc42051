"""Google's push channels (Drive, Calendar, Directory) bring the token a channel was made with, and usually no body.

Everything is in `X-Goog-` headers: the id is the channel's with the number of its message, the type what
became of the resource. A new channel says `sync` first, which is an event too. Channels end. Failed
deliveries (500 to 504) are tried again. The event's data is what the headers say, if there is no body.

A channel can't be renewed and is in no list: another is made, with an id of its own, and the old one is stopped. The
API is proven to with the JSON key of a service account, with what `gcloud auth application-default login` writes, or
with a token as it is.

https://developers.google.com/workspace/drive/api/guides/push
https://developers.google.com/workspace/calendar/api/guides/push
"""

from datetime import datetime
from typing import Any, Final, Unpack
from urllib.parse import urlencode

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


_TOKENS: Final = "https://oauth2.googleapis.com/token"
_SCOPES: Final = (
    "https://www.googleapis.com/auth/drive.readonly https://www.googleapis.com/auth/calendar.readonly"
)


def _token(key: str, now: datetime) -> str | kit.calls.Request:
    if not key.startswith("{"):
        return key
    given = kit.calls.key_document(key, "type")
    if given["type"] == "authorized_user":
        given = kit.calls.key_document(key, "client_id", "client_secret", "refresh_token")
        asked = {name: given[name] for name in ("client_id", "client_secret", "refresh_token")}
        asked["grant_type"] = "refresh_token"
    else:
        given = kit.calls.key_document(key, "client_email", "private_key")
        issued = int(now.timestamp())
        claims = {
            "iss": given["client_email"],
            "aud": _TOKENS,
            "scope": _SCOPES,
            "iat": issued,
            "exp": issued + 3600,
        }
        claims |= {"sub": given["subject"]} if "subject" in given else {}
        asked = {
            "grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer",
            "assertion": kit.calls.signed(kit.jws.make, claims, given["private_key"]),
        }
    form = {"content-type": "application/x-www-form-urlencoded"}
    return kit.calls.Request("POST", _TOKENS, form, urlencode(asked).encode())


def _make(wanted: kit.calls.Wanted, name: str, token: str, now: datetime) -> kit.calls.Request:
    asked = {
        "id": name,
        "type": "web_hook",
        "address": wanted.url,
        "token": wanted.secret,
        "expiration": int((now + wanted.lasts).timestamp() * 1000),
    }
    return kit.calls.post_json(wanted.resource, asked, token)


def _channel(answer: kit.calls.Answer) -> kit.calls.Subscription:
    found = kit.calls.document(answer)
    ends = kit.calls.moment(int(kit.calls.text_at(found, "expiration", r"\d{1,16}")) / 1000)
    return kit.calls.Subscription(
        kit.calls.text_at(found, "id"), ends, kit.calls.text_at(found, "resourceId")
    )


def _end(wanted: kit.calls.Wanted, known: kit.calls.Subscription, token: str) -> kit.calls.Request:
    api = "/".join(wanted.resource.split("/")[:5])  # https://www.googleapis.com/drive/v3
    return kit.calls.post_json(f"{api}/channels/stop", {"id": known.id, "resourceId": known.handle}, token)


renewal = kit.calls.Renewal(
    token=_token,
    read_token=kit.calls.access_token,
    make=_make,
    read=_channel,
    end=_end,
    hosts=("www.googleapis.com", "oauth2.googleapis.com"),
    resource=r"https://www\.googleapis\.com/(drive|calendar)/v3/[\w.@%/-]{1,500}/watch(\?[\w.=&%-]{1,500})?",
    lasts=kit.days(1),
)
sender = kit.Sender(
    scheme=scheme,
    id_is_signed=False,
    retry_horizon="it tries 500 to 504 again for as long as the channel lives, and names no end",
    identity=kit.told_apart_by("header x-goog-channel-id + header x-goog-message-number"),
    renewal=renewal,
    setup_url="https://developers.google.com/workspace/drive/api/guides/push",
)
