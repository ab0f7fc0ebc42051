"""Ids that a broker gives, where the sender gives none: `hookonce-message-id` of a delivery that a consumer took."""

from dataclasses import replace
from typing import Final

from hookonce.providers import Delivery, Event
from hookonce.providers.kit.events.identity import BODY, RECEIPT
from hookonce.providers.kit.provider import Provider

MESSAGE_ID: Final = "hookonce-message-id"


def with_message_ids(provider: Provider) -> Provider:
    """Return a provider whose events have the message's id where their own is of the body or of the receipt alone."""
    usual = provider.events
    places = provider.identity.places if provider.identity else ()
    lacks_ids = bool(provider.id_period) or (bool(places) and {*places} <= {BODY, RECEIPT})

    def events(delivery: Delivery) -> list[Event]:
        found, own = usual(delivery), delivery.headers.get(MESSAGE_ID)
        if not own:
            return found
        return [
            replace(each, id=f"{own}/{at}" if len(found) > 1 else own, is_undated=False)
            if not each.unreadable and (lacks_ids if each.is_undated is None else each.is_undated)
            else each
            for at, each in enumerate(found)
        ]

    return replace(provider, events=events)
