"""Signs a stored delivery anew, as its sender would send it now: for a program that knows another secret.

The body stays byte for byte, but for senders whose signature is in it, and an element of a batch is put into a batch
of one. The headers that were kept go along, but for what belongs to the connection, what was masked, and signatures of
the secret that it came with. What is made is verified before it leaves, by the sender's own module.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Final, NamedTuple

from hookonce.providers import Delivery, KeyNeeded, Reason, Rejected
from hookonce.providers.kit.provider import Provider
from hookonce.providers.kit.signing.verdict import SignOptions

_OF_CONNECTION: Final = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-length",
        "cookie",
        "expect",
        "host",
        "http2-settings",
        "keep-alive",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_OF_SIGNATURE: Final = re.compile(r"signature|hmac|digest")
_MASK: Final = "[secret]"
_MADE_HERE: Final = "sha256:"
"""What an id begins with that the ledger has made of one that was too long."""


class NotSigned(Exception):  # noqa: N818  a state of the world
    """A delivery can't be signed as its sender's; the text says why, and nothing of a secret."""


class EventName(NamedTuple):
    """An event's id and type, for senders that have them in headers."""

    id: str
    type: str


def signed_anew(  # noqa: PLR0913  the last by keyword
    provider: Provider,
    secret: str,
    stored: Delivery,
    event: EventName,
    now: datetime,
    *,
    is_element: bool = False,
) -> Delivery:
    """Return what the sender would send to the URL of `stored` now, if it had this secret. Raises: `NotSigned`."""
    body = provider.batch(stored.body) if is_element and provider.batch else stored.body
    kept = {name.lower(): value for name, value in stored.headers.items()}
    kept = {name: value for name, value in kept.items() if name not in _OF_CONNECTION and _MASK not in value}
    besides = {name: value for name, value in kept.items() if not _OF_SIGNATURE.search(name)}
    options: SignOptions = {"type": event.type, "url": stored.url, "method": provider.methods[0]}
    if not event.id.startswith(_MADE_HERE):
        options["event_id"] = event.id
    refused = ""
    # Some senders sign headers of theirs, an id perhaps; others have the signed time there, which is to be another.
    for given, is_first in ((besides, True), (besides, False), ({}, False)):
        try:
            made = _made(provider, secret, body, now, options, given)
            headers = {**made.headers, **besides} if is_first else {**besides, **made.headers}
            made = replace(made, headers=headers, url=made.url or stored.url)
            _verify(provider, secret, made, now, is_old=not is_first)
            if is_element and len(provider.events(made)) != 1:
                raise NotSigned("it is one of several events of a body that can't be made for one of them")
        except (ValueError, Rejected) as error:
            refused = error.detail if isinstance(error, Rejected) else str(error)
        else:
            return made
    raise NotSigned(refused)


def _made(  # noqa: PLR0913, PLR0917  what a sender signs
    provider: Provider,
    secret: str,
    body: bytes,
    now: datetime,
    options: SignOptions,
    given: Mapping[str, str],
) -> Delivery:
    told: SignOptions = {**options, "headers": given} if given else options
    made = provider.delivery(body, secret, now, **told)
    return replace(made, headers={name.lower(): value for name, value in made.headers.items()}, readings={})


def _verify(provider: Provider, secret: str, made: Delivery, now: datetime, *, is_old: bool) -> None:
    """Raise `Rejected` unless the sender's module takes it, or (`is_old`) does but for a signed time in the body."""
    try:
        provider.verify(made, [secret], now)
    except KeyNeeded:
        raise Rejected(
            Reason.NO_SECRET,
            f"{provider.name} signs with a key that is fetched from it, and that it alone has",
        ) from None
    except Rejected as error:
        if error.reason is not Reason.STALE or not is_old:
            raise
