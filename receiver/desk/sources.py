"""Sources, providers, test events, and the secrets that senders handed out; no secret is ever shown."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from pydantic import Field

from hookonce.providers.kit import registry
from hookonce.receiver.config.settings import Settings
from hookonce.receiver.config.suggestions import did_you_mean, no_source
from hookonce.receiver.desk.events import EventPath, found_event, get_event
from hookonce.receiver.desk.models import Listed, Name, RequestModel, Text
from hookonce.receiver.desk.refusals import Conflict, NotFound
from hookonce.receiver.desk.registry import Asks, Desk, Plan, action, looks_at
from hookonce.receiver.durations import format_duration
from hookonce.receiver.intake import test_events
from hookonce.receiver.intake.test_events import MAX_EDITED
from hookonce.receiver.ledger import alerts, handshake_secrets, pauses
from hookonce.receiver.ledger.access.api_tokens import Scope
from hookonce.receiver.ledger.alerts import Alert
from hookonce.receiver.ledger.handshake_secrets import Handed
from hookonce.receiver.ledger.maintenance import sender_api
from hookonce.receiver.ledger.maintenance.sender_api import (
    ListedDay,
    ListingState,
    MissingEvent,
    SubscriptionState,
)
from hookonce.receiver.ledger.rows import Identifier, Ours, ResponseModel
from hookonce.receiver.ledger.stats import backlog, source_activity, totals
from hookonce.receiver.ledger.stats.totals import SecretUse
from hookonce.receiver.source import Source

_CODE = "no_test_event"
FAILURES = ("rejected.bad_signature", "rejected.stale", "rejected.no_secret")
_DAYS = 30
_NAMED = 100


class SourcePath(RequestModel):
    """A source by its name."""

    source: Name


class Slot(SecretUse):
    """A secret of a source, and how often it verified a delivery: counted while the source has several."""

    is_configured: bool


class SourceModel(ResponseModel):
    """A configured source."""

    name: Ours
    provider: Ours
    url: Ours = Field(description="URL for the sender; a path only, if no public_url is configured")
    authenticity: Literal["sender", "queue"] = Field(
        description="proof of a delivery: its sender's signature, or that it lay in the broker's queue"
    )
    secrets: list[Slot]
    secret_notes: list[Ours] = Field(
        description="quotes, blanks or line ends around a secret, by its reference"
    )
    has_handed_out_secret: bool
    repeats: Literal["run", "hold"]
    conflicts: Literal["accept", "reject"]
    is_paused: bool
    last_delivery_at: datetime | None = Field(
        description="the minute of its last delivery; of the current one or two nothing is known yet"
    )
    never_came: Ours = Field(default="", description="one sentence about events that never came")
    missing: int = Field(default=0, description="events that its sender lists and the ledger has not")
    subscriptions: list[SubscriptionState] = Field(default_factory=list)
    listed_days: list[ListedDay] = Field(
        default_factory=list, description=f"the last {_DAYS} days; of one source alone"
    )
    missing_events: list[MissingEvent] = Field(
        default_factory=list, description=f"the {_NAMED} oldest; of one source alone"
    )


class TestEventRequest(RequestModel):
    """The type of a test event; without one the sender's most frequent."""

    type: Text | None = None


class TestEvent(ResponseModel):
    """A test event that was taken in; handlers see it as `event.is_test`."""

    id: Identifier
    event_id: str
    type: str


class EditedEvent(RequestModel):
    """The body that is sent instead, and whether handlers run on it."""

    body: str = Field(
        max_length=MAX_EDITED, description="as text; the event's own id in it becomes a new one"
    )
    run: bool = Field(
        default=False, description="have handlers run on it; else it is held until it is released"
    )


class ProviderModel(ResponseModel):
    """A sender there is a module for."""

    name: Ours
    summary: Ours
    origin: Ours


class HandedSecret(ResponseModel):
    """A secret that a sender handed out, never shown; `is_in_use` where its source has no configured one."""

    source: Ours
    handed_at: datetime
    is_in_use: bool


@action(scope=Scope.READ)
def list_sources(desk: Desk) -> Listed[SourceModel]:
    """List the configured sources."""
    known = desk.settings.sources
    return Listed[SourceModel](data=_shown(desk, [known[name] for name in sorted(known)]))


@action(scope=Scope.READ)
def get_source(desk: Desk, which: SourcePath) -> SourceModel:
    """Show a configured source."""
    (shown,) = _shown(desk, [source_of(desk, which)])
    shown.listed_days = sender_api.days_of(desk.connection, shown.name, _DAYS)
    shown.missing_events = sender_api.missing(desk.connection, shown.name, _NAMED)
    return shown


def _what_is_sent(here: Asks, which: SourcePath, asked: TestEventRequest) -> Plan:
    """Show the source. Raises: `NotFound` for a type of which its sender has no sample."""
    found = here.ask(get_source, which=which)
    if asked.type is not None:
        try:
            test_events.require_type(found.provider, asked.type)
        except LookupError as error:
            raise NotFound(str(error.args[0])) from None
    return Plan(found, {"which": which, "asked": asked})


@action(scope=Scope.ADMIN, looks=_what_is_sent, is_atomic=False)
def send_test_event(desk: Desk, which: SourcePath, asked: TestEventRequest) -> TestEvent:
    """Send a source a realistic event of its sender, signed with its first secret. Handlers run on it.

    Outside `hookonce dev`, only where the source has `tests = true`; audited.
    """
    source = source_of(desk, which)
    if desk.intake is None:
        raise Conflict("no delivery is taken here; `hookonce trigger` sends one to the receiver", code=_CODE)
    try:
        stored, event_id, kind = test_events.send(desk.intake, desk.connection, source, asked.type, desk.who)
    except LookupError as error:
        raise NotFound(str(error.args[0])) from None
    except test_events.NotPossible as error:
        raise Conflict(str(error), code=_CODE) from None
    return TestEvent(id=stored.id, event_id=event_id, type=kind)


@action(scope=Scope.ADMIN, looks=looks_at(get_event), is_atomic=False)
def send_edited_event(desk: Desk, which: EventPath, asked: EditedEvent) -> TestEvent:
    """Send an event again with another body, signed with its source's first secret, as a test event with its own id.

    Its header `hookonce-edited-from` names the event that it was made of. Outside `hookonce dev`, only where the source
    has `tests = true`; audited.
    """
    found = found_event(desk, which)
    event, stored = found.event, found.body
    source = desk.settings.sources.get(event.source)
    if desk.intake is None:
        raise Conflict("no delivery is taken here; ask a receiver", code=_CODE)
    if source is None:
        raise Conflict(f"source '{event.source}' is not configured; nothing can be signed for it", code=_CODE)
    if stored is None:
        raise NotFound(f"the body of event {event.id} {found.why_no_body}; only its row is left")
    try:
        body = asked.body.encode()
        edit = test_events.Edit(source, event.id, event.event_id, event.type, stored, body)
        row, event_id, kind = test_events.send_edited(
            desk.intake, desk.connection, edit, desk.who, runs=asked.run
        )
    except test_events.NotPossible as error:
        raise Conflict(str(error), code=_CODE) from None
    return TestEvent(id=row.id, event_id=event_id, type=kind)


@action(scope=Scope.READ)
def list_providers(desk: Desk) -> Listed[ProviderModel]:
    """List the senders there is a module for."""
    return Listed[ProviderModel](data=listed_providers(desk.settings))


@action(scope=Scope.READ)
def list_handed_secrets(desk: Desk) -> Listed[HandedSecret]:
    """List which sources keep a secret that their sender handed out."""
    sources = desk.settings.sources
    return Listed[HandedSecret](
        data=[
            HandedSecret(
                source=kept.source,
                handed_at=kept.at,
                is_in_use=kept.source in sources and not sources[kept.source].secrets,
            )
            for kept in handshake_secrets.all_kept(desk.connection)
        ]
    )


def opened_secrets(desk: Desk) -> dict[str, str | None]:
    """Return the secrets themselves by source, which leave no machine but that of the ledger; None for a sealed one."""
    kept = handshake_secrets.all_kept(desk.connection, desk.settings.keyring)
    return {one.source: one.secret for one in kept}


def _require_handed(kept: Sequence[HandedSecret | Handed], which: SourcePath) -> None:
    names = [one.source for one in kept]
    if which.source not in names:
        raise NotFound(
            f"no sender has handed {which.source!r} a secret{did_you_mean(which.source, names) if names else ''}; "
            "`hookonce sources secrets list` shows those that are kept"
        )


@action(scope=Scope.ADMIN, looks=looks_at(list_handed_secrets, _require_handed))
def forget_handed_secret(desk: Desk, which: SourcePath) -> None:
    """Forget the secret that a source was handed; the next one that is handed out is kept."""
    if not handshake_secrets.forget(desk.connection, which.source, desk.who):
        _require_handed(handshake_secrets.all_kept(desk.connection), which)


def source_of(desk: Desk, which: SourcePath) -> Source:
    """Return the source that a path names. Raises `NotFound`."""
    source = desk.settings.sources.get(which.source)
    if source is None:
        raise NotFound(no_source(which.source, desk.settings.sources))
    return source


def listed_providers(settings: Settings) -> list[ProviderModel]:
    """Return the senders there is a module for, which a configuration alone says."""
    listed = registry.listing(settings.provider_places)
    return [ProviderModel(name=one.name, summary=one.summary, origin=one.origin) for one in listed]


def _shown(desk: Desk, sources: list[Source]) -> list[SourceModel]:
    """Return sources with what the ledger knows of them."""
    connection = desk.connection
    paused = pauses.sources(connection)
    last_seen = source_activity.last_seen(connection)
    kept = {one.source for one in handshake_secrets.all_kept(connection)}
    used = {(each.source, each.slot): each for each in totals.secrets(connection)}
    listings, missing = sender_api.listings(connection), sender_api.missing_counts(connection)
    renewed = sender_api.subscriptions(connection, sources)
    now = datetime.now(UTC)
    return [
        SourceModel(
            name=source.name,
            provider=source.provider.name,
            url=source.shown_url,
            authenticity=source.authenticity,
            secrets=_slots(source, used),
            secret_notes=list(source.secret_notes),
            has_handed_out_secret=source.name in kept,
            repeats=source.repeats or "run",
            conflicts=source.conflicts,
            is_paused=source.name in paused,
            last_delivery_at=last_seen.get(source.name),
            never_came=words_for_never_came(
                source, listings.get(source.name), missing.get(source.name, (0, now))[0], now
            ),
            missing=missing.get(source.name, (0, now))[0],
            subscriptions=[each for each in renewed if each.source == source.name],
        )
        for source in sources
    ]


def _slots(source: Source, used: Mapping[tuple[str, int], SecretUse]) -> list[Slot]:
    configured = range(1, len(source.secrets) + 1)
    slots = sorted({*configured, *(slot for name, slot in used if name == source.name)})
    unused = {"source": source.name, "count": 0, "last_used": None}
    return [
        Slot(
            **{**unused, "slot": slot, **dict(used.get((source.name, slot), ()))},
            is_configured=slot in configured,
        )
        for slot in slots
    ]


def words_for_never_came(source: Source, state: ListingState | None, number: int, now: datetime) -> str:
    """Return in a sentence what is known of events of a source that never came."""
    if source.provider.listing is None:
        return "can't be known for this sender, which is not asked"
    if source.reconcile is None:
        return "not known: its sender is not asked; set api_key and reconcile"
    problem = f"; {state.problem}" if state and state.problem else ""
    if state is None or state.asked_at is None or state.checked_until is None:
        return f"not known: its sender was not asked yet{problem}"
    lacking = f"{number} events are" if number > 1 else "1 event is" if number else "nothing is"
    gap = f"; {state.gap}" if state.gap else ""
    return (
        f"asked {format_duration(now - state.asked_at)} ago; up to {state.checked_until:%Y-%m-%d %H:%M} UTC "
        f"{lacking} missing{gap}{problem}"
    )


@dataclass(frozen=True, slots=True)
class Signs:
    """Figures of all sources, read at once; by source."""

    last: dict[str, datetime]
    usual_gap: dict[str, timedelta]
    failed: dict[str, int]
    taken: dict[str, int]
    oldest_due: dict[str, float]
    alerts: list[Alert]
    paused: set[str]
    handed: set[str]


def signs(desk: Desk) -> Signs:
    """Return the figures by which the health of sources is judged."""
    connection = desk.connection
    hour = timedelta(hours=1)
    return Signs(
        last=source_activity.last_seen(connection),
        usual_gap=source_activity.rhythm(connection),
        failed=source_activity.recent(connection, hour, FAILURES),
        taken=source_activity.recent(connection, hour, ("accepted", "duplicate")),
        oldest_due=backlog.oldest_due_by_source(connection),
        alerts=alerts.open_alerts(connection),
        paused=pauses.sources(connection),
        handed={one.source for one in handshake_secrets.all_kept(connection)},
    )
