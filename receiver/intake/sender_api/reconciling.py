"""Compares what a sender lists with the ledger, and has what is missing come.

A page is compared, and what is missing noted; then events that the list holds are taken in; then the page is counted
and the cursor moved, in one statement. A process that is killed in between meets the page again, and finds known what
it had taken in. A list that does not hold the events has them redelivered to the front door: first a single one, and
the others once one has come, so that a receiver that is down costs none of the tries, of which an event has two a day.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

import psycopg

from hookonce.providers import Delivery, Rejected
from hookonce.providers.kit.calls import GONE, NOT_FOUND, Account, CallFailed, Listed, Listing, Page
from hookonce.receiver.config.settings import RETRY_MARGIN, Settings
from hookonce.receiver.failpoints import reach
from hookonce.receiver.intake.new_events import ledger_id
from hookonce.receiver.intake.pipeline import Intake
from hookonce.receiver.intake.sender_api.client import Client
from hookonce.receiver.ledger.maintenance import sender_api as ledger
from hookonce.receiver.ledger.maintenance.sender_api import ListingState, MissingEvent

LAG: Final = timedelta(minutes=5)
"""The age below which an event is left to the next pass: it may be on its way, and lists are late."""
OVERLAP: Final = timedelta(hours=1)
"""How far a pass looks back before the end of the one before: an entry may come late into the list."""
FIRST: Final = timedelta(days=3)
"""How far the first pass looks back."""
TRIES: Final = 2
DAY: Final = timedelta(days=1)
PROBE: Final = timedelta(minutes=20)
MAX_PAGES: Final = 1000
"""Pages of one pass: a hundred thousand entries; what is left is of a later time, or of nobody's."""
LEASE: Final = timedelta(minutes=2)


class Reconciler:
    """Compares the list of one source's sender with all sources of that sender."""

    def __init__(
        self, settings: Settings, client: Client, listing: Listing, intake: Intake, lease: timedelta
    ) -> None:
        self._client = client
        self._listing = listing
        self._source = client.source
        provider = self._source.provider.name
        self._others = [each.name for each in settings.sources.values() if each.provider.name == provider]
        self._intake = intake
        self._kept = (
            min(self._source.keep_events or settings.keep_events, timedelta(days=3650)) - RETRY_MARGIN
        )
        self._lease = lease

    def preview(self, connection: psycopg.Connection, since: datetime) -> Iterator[MissingEvent]:
        """Yield what is missing since a time, and change nothing. Raises `CallFailed`."""
        now = self._client.now
        for page in self._pages(connection, "", since, now):
            yield from self._compared(connection, page.listed, since, now - LAG, now)[0]

    def run(self, connection: psycopg.Connection, state: ListingState, since: datetime | None = None) -> None:
        """Go on with the pass that is under way, or begin one. Raises `CallFailed`; what was done stays."""
        begun, low, cursor = state.begun_at, state.since, state.cursor
        if begun is None or low is None or since is not None:
            begun, cursor = self._client.now, ""
            low, gap = self._begin(state, since, begun)
            ledger.update_listing(
                connection,
                state,
                begun_at=begun,
                since=low,
                cursor=cursor,
                days="{}",
                gap=gap,
                seen_id=ledger.newest_id(connection),
            )
            state = state._replace(days={})
        counted_from = max(low, state.checked_until) if state.checked_until else low
        shared, days = 0, Counter(state.days)
        try:
            for page in self._pages(connection, cursor, low, begun):
                shared += self._settle_page(connection, state, page, days, (low, counted_from, begun))
        except CallFailed as error:
            if error.status in {400, NOT_FOUND, GONE, 422}:
                ledger.update_listing(connection, state, begun_at=None, cursor="")
            raise
        told = f"{shared} listed events came to another source of the same account, and are left there"
        with connection.transaction():
            ledger.count_listed(connection, self._source.name, days)
            ledger.update_listing(
                connection,
                state,
                begun_at=None,
                since=None,
                cursor="",
                days="{}",
                checked_until=begun - LAG,
                asked_at=self._client.now,
                problem=told if shared else None,
                failed_since=None,
            )

    def _begin(
        self, state: ListingState, since: datetime | None, now: datetime
    ) -> tuple[datetime, str | None]:
        """Return from when a pass looks, and of which time nothing can be known any more."""
        # Whatever is asked for, nothing is left out that no pass has compared to its end.
        starts = (since, state.since, state.checked_until and state.checked_until - OVERLAP)
        wanted = min(filter(None, starts), default=now - FIRST)
        bounds = {self._listing.keeps: "its sender lists", self._kept: "ids are kept"}
        kept = min(bounds)
        if wanted >= now - kept:
            return wanted, state.gap
        low = now - kept
        if state.checked_until is None or state.checked_until >= low:
            return low, state.gap
        return (
            low,
            f"{_at(state.checked_until)} to {_at(low)} can't be known: {bounds[kept]} for {kept.days} d",
        )

    def _pages(
        self, connection: psycopg.Connection, cursor: str, low: datetime, begun: datetime
    ) -> Iterator[Page]:
        """Yield the pages from a cursor on, down to a time. Raises `CallFailed`."""
        listing, seen, oldest = self._listing, {cursor}, begun + DAY
        for _ in range(MAX_PAGES):
            token = self._client.token(connection, listing)
            request = listing.missed(Account(self._client.source.api, token), cursor, low)
            page = listing.read(self._client.send(connection, listing, request))
            last = min((each.at for each in page.listed), default=low)
            yield page
            if not page.cursor or last < low:
                return
            if page.cursor in seen or last > oldest:
                raise CallFailed(
                    "the list goes round in circles; the next pass begins at its top", status=GONE
                )
            seen.add(page.cursor)
            cursor, oldest = page.cursor, last
        raise CallFailed(f"the list has more than {MAX_PAGES} pages; goes on next time")

    def _settle_page(
        self,
        connection: psycopg.Connection,
        state: ListingState,
        page: Page,
        days: Counter[str],
        times: tuple[datetime, datetime, datetime],
    ) -> int:
        """Have what is missing of a page come, count it, and move on; return how many another source has."""
        low, counted_from, begun = times
        found, shared = self._compared(connection, page.listed, low, begun - LAG, state.created_at)
        ledger.add_missing(connection, found)
        reach("reconcile.noted")
        by_id = {ledger_id(each.id): each for each in page.listed if each.body}
        for each in found:
            if each.event_id in by_id:
                self._take(connection, by_id[each.event_id], each)
        reach("reconcile.taken")
        days.update(
            f"{each.at.astimezone(UTC):%Y-%m-%d}"
            for each in page.listed
            if each.is_first and counted_from < each.at <= begun - LAG
        )
        ledger.update_listing(connection, state, self._lease, cursor=page.cursor, days=json.dumps(days))
        reach("reconcile.moved")
        return shared

    def _compared(
        self,
        connection: psycopg.Connection,
        listed: Sequence[Listed],
        low: datetime,
        high: datetime,
        from_us: datetime,
    ) -> tuple[list[MissingEvent], int]:
        """Return what the ledger lacks of a page, and how much of it another source has instead.

        What was answered 2xx before this source was asked for is another program's.
        """
        wanted = {ledger_id(each.id): each for each in listed if low <= each.at <= high}
        known = ledger.known(connection, self._others, list(wanted))
        name, now = self._source.name, self._client.now
        lacking = {key: each for key, each in wanted.items() if name not in known.get(key, ())}
        found = [
            MissingEvent(
                source=name,
                event_id=key,
                type=each.type,
                listed_at=each.at,
                found_at=now,
                reference=each.reference,
                why="answered 2xx, and not in the ledger"
                if each.is_delivered
                else "no delivery was answered 2xx",
            )
            for key, each in lacking.items()
            if key not in known and not (each.is_delivered and each.at < from_us)
        ]
        return found, sum(key in known for key in lacking)

    def _take(self, connection: psycopg.Connection, listed: Listed, missing: MissingEvent) -> None:
        delivery = Delivery("POST", self._source.url_of(), {"content-type": "application/json"}, listed.body)
        try:
            self._intake.take_listed(self._source, delivery, self._client.now)
        except Rejected as error:
            refused = missing.model_copy(update={"why": f"can't be taken in: {error.reason}"})
            ledger.add_missing(connection, [refused])

    def settle(self, connection: psycopg.Connection, state: ListingState, *, eager: bool = False) -> int:
        """Let go of what has come, have redelivered what is missing still, and return how many calls that took.

        `eager`: at once, since somebody waits for it. Raises `CallFailed`.
        """
        name, now = self._source.name, self._client.now
        ledger.arrived(connection, name, now - min(self._listing.keeps, self._kept))
        open_ = ledger.missing(connection, name)
        redeliver = self._listing.redeliver
        if not open_ or redeliver is None:
            return 0
        if eager or ledger.came_after(connection, name, state.seen_id):
            group = open_
        else:
            group = [each for each in open_ if not any(at > now - DAY for at in each.tried_at)][:1]
            pause = max(PROBE, DAY / len(open_))
            if state.probed_at and now - state.probed_at < pause:
                return 0
        newest, calls = ledger.newest_id(connection), 0
        ledger.update_listing(connection, state, probed_at=now)
        for each in group:
            if not ledger.try_again(connection, each, now, TRIES, DAY):
                continue
            token = self._client.token(connection, self._listing)
            request = redeliver(Account(self._client.source.api, token), each.reference)
            answer = self._client.send(connection, self._listing, request, self._listing.write_cost)
            calls += 1
            ledger.update_listing(connection, state, self._lease)
            if answer.status in {NOT_FOUND, GONE}:
                gone = each.model_copy(update={"why": "its sender has it no more"})
                ledger.add_missing(connection, [gone])
            elif not 200 <= answer.status < 300:  # noqa: PLR2004  what success is
                self._listing.read(answer)  # raises what it means
        ledger.update_listing(connection, state, seen_id=newest)
        return calls


def _at(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M}"
