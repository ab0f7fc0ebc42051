"""WebSub hubs, YouTube's among them, sign the body with HMAC: `X-Hub-Signature: sha1=…` (or sha256, sha512), in hex.

The secret is the `hub.secret` of the subscription. A hub asks by GET whether a subscription is wanted: it gets its
`hub.challenge` back if `hub.topic` is in the option `topics` (a list), or `hub.verify_token` is one of the secrets;
who asks to end one, or for another topic, gets a 404. An Atom feed with one entry (YouTube's have one) is known by
the entry and the time of its update, or by the entry that was deleted; anything else is known by its fingerprint.

https://www.w3.org/TR/websub/
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from hookonce.providers import Delivery, Rejected, Reply, kit

_HEADER: Final = "x-hub-signature"
_ATOM: Final = "{http://www.w3.org/2005/Atom}"
_DELETED: Final = "{http://purl.org/atompub/tombstones/1.0}deleted-entry"
_YOUTUBE: Final = "{http://www.youtube.com/xml/schemas/2015}"
_SHA256 = kit.Hmac(header=_HEADER, prefix="sha256=")
_SCHEMES: Final = {
    "sha1": kit.Hmac(header=_HEADER, prefix="sha1=", hash="sha1"),
    "sha256": _SHA256,
    "sha512": kit.Hmac(header=_HEADER, prefix="sha512=", hash="sha512"),
}


def _read(delivery: Delivery) -> Any:  # noqa: ANN401  what a hub passes on
    """Return what an Atom feed of one entry says, beside all of it; any other body as it is."""
    if not delivery.body.lstrip().startswith(b"<"):
        return kit.any_body_or_none(delivery)
    try:
        feed = kit.xml_body.parse_xml(delivery.body)
    except Rejected:
        return None
    said: dict[str, Any] = {"xml": delivery.body.decode("utf-8", "replace")}
    entries, gone = feed.findall(f"{_ATOM}entry"), feed.findall(_DELETED)
    if len(entries) + len(gone) != 1:
        return said
    if gone:
        return said | {"deleted": gone[0].get("ref"), "when": gone[0].get("when")}
    names = {"id": f"{_ATOM}id", "updated": f"{_ATOM}updated", "title": f"{_ATOM}title"}
    names |= {"channel": f"{_YOUTUBE}channelId", "video": f"{_YOUTUBE}videoId"}
    return said | {name: kit.xml_body.text_at(entries[0], path) for name, path in names.items()}


events = kit.one_event(
    id=kit.or_body(kit.join("$.id", "$.updated"), kit.join("$.deleted", "$.when")),
    type=kit.first(kit.join(kit.fixed("deleted"), kit.first("$.deleted"), by="."), kit.fixed("updated")),
    account="$.channel",
    occurred_at=kit.first("$.updated", "$.when"),
    read=_read,
)


@dataclass(frozen=True)
class WebSub:
    """The sender, with the topics of which subscriptions are confirmed."""

    topics: Sequence[str]
    events = events
    sign = staticmethod(kit.signer(_SHA256.sign, content="application/atom+xml"))
    sender = kit.Sender(
        scheme=_SHA256,
        id_is_signed=True,
        body_is_unsigned=False,
        retry_horizon=kit.days(1),
        identity=kit.told_apart_by(
            "xml updated",
            "body",
            because="an entry that is deleted, and a content that is no feed, is as it is",
        ),
        setup_url="https://pubsubhubbub.appspot.com/subscribe",
    )

    def verify(self, delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
        """Accept `delivery` by the hash that its signature names, if it is one of three. Raises: Rejected."""
        named = delivery.headers.get(_HEADER, "").partition("=")[0]
        _SCHEMES.get(named, _SHA256).verify(delivery, secrets, now)

    def handshake(self, delivery: Delivery, secrets: Sequence[str]) -> Reply | None:
        """Confirm a subscription that is wanted; 404 to other questions of a hub, None for anything else."""
        if kit.query_parameter(delivery, "hub.mode") is None:
            return None
        reply = kit.subscribed(delivery, secrets)
        if reply is not None and kit.query_parameter(delivery, "hub.topic") in self.topics:
            reply = kit.echo(kit.query_parameter(delivery, "hub.challenge"))
        return reply if reply is not None and reply.body else Reply(status=404)


@kit.with_options("websub")
def configure(given: kit.Options) -> WebSub:
    """Make the provider with a source's options."""
    topics = given.take("topics", [])
    if not isinstance(topics, list) or not all(isinstance(topic, str) and topic for topic in topics):
        given.mistakes.append(f"topics is {topics!r}, expected a list of URLs")
    return WebSub(topics)
