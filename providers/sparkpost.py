"""SparkPost brings HTTP Basic authentication, as its webhook is set up, and signs nothing.

A webhook with a token instead has `in = "header:X-MessageSystems-Webhook-Token"`; tokens of OAuth 2 change and are
not taken. A delivery is a list, each element one `$.msys.<class>` with its `event_id`; an inbound mail
(`relay_message`) has none and is known by its contents. The list `[{"msys": {}}]` only asks whether we are there.
SparkPost tries for eight hours.

https://developers.sparkpost.com/api/webhooks/
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from hookonce.providers import Delivery, Reply, kit

_PING: Final[Any] = [{"msys": {}}]
_PING_BYTES = 64


def _event(view: kit.EventView) -> tuple[str, dict[str, Any]]:
    """The class of an element and what it holds."""
    found = view.data.get("msys") if isinstance(view.data, dict) else None
    name = next(iter(found), "") if isinstance(found, dict) else ""
    held = found[name] if name and found else None
    return name, held if isinstance(held, dict) else {}


def _value(name: str) -> kit.Extractor:
    def put(data: Any, value: str) -> Any:  # noqa: ANN401
        held = data.get("msys", {}).get("message_event", {})
        return {"msys": {"message_event": {**held, name: value}}}

    return kit.Extractor(lambda view: _event(view)[1].get(name), f"$.msys.*.{name}", put=put)


events = kit.many_events(
    items="$",
    id=kit.first(_value("event_id"), kit.data_digest()),
    type=kit.or_unknown(_value("type"), kit.Extractor(lambda view: _event(view)[0] or None, "the class")),
    account=_value("customer_id"),
    occurred_at=_value("timestamp"),
)


@kit.with_options("sparkpost")
def configure(given: kit.Options) -> kit.Configured:
    """Make the provider with a source's options."""
    scheme = kit.declared_options.token_scheme(given, "basic")

    def handshake(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:
        """Say that we are here; None for anything else."""
        if delivery.method != "POST" or len(delivery.body) > _PING_BYTES:
            return None
        return Reply() if kit.authentic_body(scheme.authentic, delivery, secrets) == _PING else None

    return kit.by_token(scheme, events=events, sender=replace(_sender, handshake=handshake))


_sender = kit.Sender(
    id_is_signed=False,
    retry_horizon=kit.hours(8),
    identity=kit.told_apart_by(
        "$[*].msys.message_event.event_id",
        "$[*].msys.track_event.event_id",
        "$[*].msys.unsubscribe_event.event_id",
        "$[*].msys.gen_event.event_id",
        "body",
        because="what has no event_id is an inbound mail, with the Message-ID of its sender",
    ),
    setup_url="https://app.sparkpost.com/webhooks",
)
