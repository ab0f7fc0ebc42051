"""Newest versions that handlers have done of an entity (`stale=`): shown, forgotten, and who will skip an event."""

from collections.abc import Iterator, Mapping, Sequence

from hookonce.providers import Delivery, Rejected
from hookonce.providers.kit.events.fields import EventView
from hookonce.providers.kit.events.subjects import about, subject_of
from hookonce.providers.kit.reading.bodies import parse_json, text_of
from hookonce.receiver.desk import deliveries
from hookonce.receiver.desk.models import Listed, RequestModel, Text
from hookonce.receiver.desk.refusals import NotFound
from hookonce.receiver.desk.registry import Desk, action, looks_at
from hookonce.receiver.ledger import entities
from hookonce.receiver.ledger.access.api_tokens import Scope
from hookonce.receiver.ledger.entities import NewestVersion
from hookonce.receiver.ledger.handlers import HandlerLimits, known_handlers, limits_of
from hookonce.receiver.ledger.replay import rereading


class EntityPath(RequestModel):
    """An entity of a source, as `event.subject.entity` has it: `customer:cus_123`."""

    source: Text
    entity: Text


@action(scope=Scope.READ)
def get_entity(desk: Desk, which: EntityPath) -> Listed[NewestVersion]:
    """Show the newest version of an entity that each handler with stale= has done."""
    found = entities.newest(desk.connection, which.source, which.entity)
    if not found:
        raise _no_entity(which)
    return Listed[NewestVersion](data=found)


@action(scope=Scope.ADMIN, looks=looks_at(get_entity))
def forget_entity(desk: Desk, which: EntityPath) -> None:
    """Forget what was done of an entity: whatever comes next is its newest."""
    with desk.connection.transaction():
        if not entities.forget(desk.connection, which.source, which.entity):
            raise _no_entity(which)
        desk.note("forget entity", f"source {which.source}")


def skipping(desk: Desk, events: Sequence[int]) -> dict[int, list[str]]:
    """Return which handlers will skip events, since they have done a newer version of the entity."""
    known = limits_of(known_handlers(desk.connection))
    limits = {name: each for name, each in known.items() if each.stale == "skip"}
    return {event: [*_skipping(desk, event, limits)] for event in events} if limits else {}


def _skipping(desk: Desk, event: int, limits: Mapping[str, HandlerLimits]) -> Iterator[str]:
    found = rereading.find(desk.connection, event, desk.settings.keyring)
    if found is None:
        return
    _, provider = deliveries.sender(desk, found.source, found.provider)
    delivery = Delivery("POST", found.body.url, found.body.headers, bytes(found.body.body))
    try:
        is_read = provider is not None and not found.body.is_element
        data = (
            provider.events(delivery)[0].data if provider and is_read else parse_json(text_of(delivery.body))
        )
    except (Rejected, IndexError):
        return
    declared, view = provider.subject if provider else None, EventView(delivery, data, data)
    for name, each in limits.items():
        own = about(entity=tuple(each.entity), version=each.version) if each.entity and each.version else None
        subject = subject_of(own, declared, view, found.type, found.received_at)
        done = entities.newest(desk.connection, found.source, subject.entity) if subject else ()
        if subject and any(
            (newest.handler, newest.account) == (name, found.account or "")
            and (newest.version, newest.event) > (subject.version, event)
            for newest in done
        ):
            yield name


def _no_entity(which: EntityPath) -> NotFound:
    return NotFound(
        f"no handler has done anything of the entity '{which.entity}' of the source '{which.source}'; expected one "
        "like 'customer:cus_123', as event.subject.entity has it"
    )
