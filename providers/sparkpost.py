"""SparkPost brings HTTP Basic authentication, as its webhook is set up, and signs nothing.

A webhook with a token instead has `in = "header:X-MessageSystems-Webhook-Token"`; tokens of OAuth 2 change and are
not taken. A delivery is a list, each element one `$.msys.<class>` with its `event_id`; an inbound mail
(`relay_message`) has none and is known by its contents. The list `[{"msys": {}}]` only asks whether we are there.
SparkPost tries for eight hours.

https://developers.sparkpost.com/api/webhooks/
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from hookonce.providers import Delivery, Reply
from hookonce.providers.kit import (
    Configured,
    EventView,
    Extractor,
    Sender,
    authentic_body,
    data_digest,
    first,
    fixed,
    many_events,
    told_apart_by,
)
from hookonce.providers.kit.registry.declared_options import token_scheme
from hookonce.providers.kit.registry.options import Options
from hookonce.providers.kit.registry.token_sender import by_token

_PING: Final[Any] = [{"msys": {}}]
_PING_BYTES = 64


def _event(view: EventView) -> tuple[str, dict[str, Any]]:
    """The class of an element and what it holds."""
    found = view.data.get("msys") if isinstance(view.data, dict) else None
    name = next(iter(found), "") if isinstance(found, dict) else ""
    held = found[name] if name and found else None
    return name, held if isinstance(held, dict) else {}


def _value(name: str) -> Extractor:
    def put(data: Any, value: str) -> Any:  # noqa: ANN401
        held = data.get("msys", {}).get("message_event", {})
        return {"msys": {"message_event": {**held, name: value}}}

    return Extractor(lambda view: _event(view)[1].get(name), f"$.msys.*.{name}", put=put)


events = many_events(
    items="$",
    id=first(_value("event_id"), data_digest()),
    type=first(
        _value("type"), Extractor(lambda view: _event(view)[0] or None, "the class"), fixed("unknown")
    ),
    account=_value("customer_id"),
    occurred_at=_value("timestamp"),
)


def configure(options: Mapping[str, Any]) -> Configured:
    """Make the provider with a source's options. Raises: ValueError listing every mistake."""
    given = Options(options, "sparkpost")
    scheme = token_scheme(given, "basic")
    given.done()

    def handshake(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:
        """Say that we are here; None for anything else."""
        if delivery.method != "POST" or len(delivery.body) > _PING_BYTES:
            return None
        return Reply() if authentic_body(scheme.authentic, delivery, secrets) == _PING else None

    return by_token(scheme, events=events, sender=replace(_sender, handshake=handshake))


_sender = Sender(
    id_is_signed=False,
    body_is_unsigned=True,
    retry_horizon=timedelta(hours=8),
    identity=told_apart_by(
        "$[*].msys.message_event.event_id",
        "$[*].msys.track_event.event_id",
        "$[*].msys.unsubscribe_event.event_id",
        "$[*].msys.gen_event.event_id",
        "body",
        because="what has no event_id is an inbound mail, with the Message-ID of its sender",
    ),
    setup_url="https://app.sparkpost.com/webhooks",
)
