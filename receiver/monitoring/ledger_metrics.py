"""The metrics of `/metrics` that the ledger knows, what costs least first: a scrape takes what it gets in time."""

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate, product
from typing import Any

import psycopg
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from hookonce.providers import Reason
from hookonce.receiver.ledger import alerts
from hookonce.receiver.ledger.handlers import known_handlers
from hookonce.receiver.ledger.maintenance import sender_api
from hookonce.receiver.ledger.runs import breakers, limit_gate
from hookonce.receiver.ledger.states import EventStatus, RunStatus
from hookonce.receiver.ledger.stats import (
    activity,
    backlog,
    counters,
    event_counts,
    run_durations,
    source_activity,
    totals,
    worker_slots,
)
from hookonce.receiver.ledger.stats.counters import Kind, Tally

COUNTERS = {
    "duplicate": ("hookonce_duplicates", "Deliveries of an event the ledger had"),
    EventStatus.DONE: ("hookonce_events_done", "Events whose runs are all done; again if replayed"),
    EventStatus.DEAD: ("hookonce_events_dead", "Events that died; again if replayed"),
    EventStatus.IGNORED: ("hookonce_events_ignored", "Events that no handler took; again if replayed"),
}
TALLIES = {
    Kind.CONFLICT: (
        "hookonce_conflicting_deliveries",
        "Deliveries with another body under a known id",
        "source",
        "",
    ),
    Kind.WINDOW_HIT: ("hookonce_window_hits", "Duplicates that the window knew", "source", ""),
    Kind.MET: (
        "hookonce_duplicates_met",
        "Duplicates by the status of the event they met",
        "source",
        "status",
    ),
    Kind.TYPE: (
        "hookonce_duplicates_by_type",
        f"Duplicates by event type: {counters.MAX_TYPES} of a source, the rest under none",
        "source",
        "type",
    ),
    Kind.RECOVERED: (
        "hookonce_leases_recovered",
        "Runs lost with their worker or its lease: run again, or dead",
        "source",
        "status",
    ),
    Kind.RECOVERED_RUN: (
        "hookonce_recoveries",
        "Runs lost with their worker or its lease: run again, or dead; a batch counts once",
        "handler",
        "status",
    ),
    Kind.REFUSED: (
        "hookonce_finalizations_refused",
        "Attempts that could not end: their lease was another's",
        "source",
        "",
    ),
    Kind.UNREADABLE: (
        "hookonce_unreadable",
        "Genuine events that the source's provider module could not read",
        "source",
        "",
    ),
    Kind.REDIS_ERROR: ("hookonce_redis_errors", "Times that Redis failed receivers", "", "phase"),
    Kind.KEY: (
        "hookonce_idempotency",
        "Requests under a key, by what became of them",
        "operation",
        "outcome",
    ),
    Kind.ENDED: ("hookonce_runs", "Runs that ended; again if replayed", "handler", "status"),
    Kind.ATTEMPTS: ("hookonce_attempts", "Attempts of the runs that ended", "handler", ""),
    Kind.RETRIES: (
        "hookonce_retries",
        "Attempts of the runs that ended, but for the first of each",
        "handler",
        "",
    ),
    Kind.STALE: (
        "hookonce_stale",
        "Runs that were skipped, since a newer version of their entity was done",
        "handler",
        "",
    ),
    Kind.UNGUARDED: (
        "hookonce_unguarded",
        "Events that a handler with stale= took without a version: none could be read",
        "handler",
        "",
    ),
    Kind.WHEN_FAILED: (
        "hookonce_when_failed",
        "Events that were not forwarded, since the `when` of the forward failed on them",
        "handler",
        "",
    ),
}
"""Name, text, and the labels of subject and detail."""
OF_EACH_HANDLER = (
    *((Kind.ENDED, status) for status in (RunStatus.DONE, RunStatus.DEAD)),
    *((Kind.RECOVERED_RUN, fate) for fate in ("again", "dead")),
    (Kind.ATTEMPTS, ""),
    (Kind.RETRIES, ""),
)
OF_EACH_SOURCE = (Kind.CONFLICT, Kind.WINDOW_HIT, Kind.REFUSED, Kind.UNREADABLE)
UNPROVEN: tuple[str, ...] = (Reason.BAD_SIGNATURE, Reason.STALE, Reason.NO_SECRET)
"""What a changed secret or a clock that is off looks like."""


def collect(connection: psycopg.Connection, sources: Mapping[str, int]) -> Iterator[Metric]:
    """Read everything, at one moment: what adds up in the ledger adds up on the page.

    Counters of `sources` (name → how many secrets it has) and of handlers that workers know begin at 0: one that
    appears when something happens shows no `increase()` for it.
    Raises: `psycopg.Error` at the first figure that can't be had; those before it stand.
    """
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield from _backlog(connection)
        handlers = sorted({each.handler for each in known_handlers(connection)})
        span = activity.uncounted(connection)
        fresh = run_durations.uncounted(connection, span["begin"], span["end"])
        yield from _counters(connection, sources, span, fresh)
        yield from _rejections(connection, sources)
        yield from _tallies(connection, sources, handlers, fresh)
        yield from _alerts_and_breakers(connection)
        yield from _open_operations(connection)
        tried = {source: each.oldest for source, each in backlog.retries_by_source(connection).items()}
        yield _gauge(
            "hookonce_oldest_retry_seconds",
            "For how long an event has failed and been tried again",
            ["source"],
            tried,
        )
        yield _gauge(
            "hookonce_conflicts",
            "Events that came with two bodies",
            [],
            [([], totals.conflicts(connection)[0])],
        )
        sums = totals.event_sums(connection)
        labels = ["source", "status"]
        yield _gauge(
            "hookonce_events", "Events in the ledger", labels, [([e.source, e.status], e.count) for e in sums]
        )
        yield _gauge(
            "hookonce_oldest_event_seconds",
            "Age of the oldest event that is not over, since it came",
            labels,
            [([e.source, e.status], e.oldest_seconds) for e in sums if e.oldest_seconds is not None],
        )


def _backlog(connection: psycopg.Connection) -> Iterator[Metric]:
    oldest = backlog.oldest_due(connection)
    yield _gauge(
        "hookonce_oldest_due_seconds", "Age of the oldest due event of no paused source", [], [([], oldest)]
    )
    due = backlog.due(connection)
    yield _gauge("hookonce_due", f"Events due now and not parked, {backlog.MAX_DUE} at most", [], [([], due)])
    text = f"Runs that are parked, by the reason, {backlog.MAX_COUNTED} of each at most"
    yield _gauge("hookonce_parked", text, ["reason"], backlog.parked(connection))


def _counters(
    connection: psycopg.Connection,
    sources: Collection[str],
    span: Mapping[str, Any],
    fresh: Sequence[run_durations.Uncounted],
) -> Iterator[Metric]:
    yield from _accounts(connection, sources)
    counters = activity.totals_so_far(connection, span)
    none = dict.fromkeys([*sources, *(source for source, _ in counters if source)], 0)
    for what, (name, text) in COUNTERS.items():
        found = none | {source: number for (source, each), number in counters.items() if each == what}
        yield _counter(name, text, ["source"], [([source], number) for source, number in found.items()])
    took = HistogramMetricFamily(
        "hookonce_run_duration_seconds", "Last attempts of the runs that ended", labels=["source"]
    )
    nothing = [0] * (len(run_durations.LIMITS) + 1), 0.0
    durations = dict.fromkeys(sources, nothing) | run_durations.by_source(connection, fresh)
    for source, (counts, seconds) in durations.items():
        limits = [*(f"{limit:g}" for limit in run_durations.LIMITS), "+Inf"]
        took.add_metric([source], list(zip(limits, accumulate(counts), strict=True)), seconds)
    yield took
    last = [([source], at.timestamp()) for source, at in source_activity.last_seen(connection).items()]
    yield _gauge("hookonce_last_delivery_timestamp_seconds", "When a source last delivered", ["source"], last)


def _accounts(connection: psycopg.Connection, sources: Collection[str]) -> Iterator[Metric]:
    """Yield what `hookonce_events` adds up to: accepted is the events in each status, and those pruned."""
    gone = event_counts.gone(connection)
    accepted = event_counts.accepted(connection, gone)
    of_sources = dict.fromkeys([*sources, *accepted, *gone], event_counts.Gone()) | gone
    yield _counter(
        "hookonce_events_accepted",
        "Events taken in: those in each status, and pruned ones",
        ["source"],
        [([source], accepted.get(source, 0)) for source in of_sources],
    )
    yield _counter(
        "hookonce_events_pruned",
        "Events that outlived their horizon",
        ["source"],
        [([source], each.pruned) for source, each in of_sources.items()],
    )
    yield _counter(
        "hookonce_events_replayed",
        "Events that had ended and were replayed, by the status they had",
        ["source", "status"],
        [
            ([source, status], each.replayed[status])
            for source, each in of_sources.items()
            for status in (EventStatus.DONE, EventStatus.DEAD, EventStatus.IGNORED)
        ],
    )


def _rejections(connection: psycopg.Connection, sources: Mapping[str, int]) -> Iterator[Metric]:
    found: dict[tuple[str, str], int] = dict.fromkeys(product(sources, UNPROVEN), 0)
    found |= {(each.source, each.reason): each.count for each in totals.rejections(connection)}
    yield _counter("hookonce_rejections", "Deliveries rejected", ["source", "reason"], found.items())
    used = {(source, slot): 0 for source, slots in sources.items() for slot in range(1, slots + 1)}
    used |= {(each.source, each.slot): each.count for each in totals.secrets(connection)}
    yield _counter(
        "hookonce_secret_used",
        "Deliveries by the secret that verified them",
        ["source", "slot"],
        [([source, str(slot)], count) for (source, slot), count in used.items()],
    )


def _tallies(
    connection: psycopg.Connection,
    sources: Collection[str],
    handlers: Collection[str],
    fresh: Sequence[run_durations.Uncounted],
) -> Iterator[Metric]:
    found = Counter({Tally(kind, source): 0 for kind in OF_EACH_SOURCE for source in sources})
    found |= {Tally(Kind.REDIS_ERROR, detail=phase): 0 for phase in ("claim", "settle", "notify")}
    found |= {Tally(kind, handler, detail): 0 for kind, detail in OF_EACH_HANDLER for handler in handlers}
    found |= counters.totals(connection)
    for handler, what, number in fresh:
        kind, _, detail = what.partition(".")
        if kind in set(Kind):
            found[Tally(Kind(kind), handler, detail)] += number
    for kind, (name, text, subject, detail) in TALLIES.items():
        labels = [label for label in (subject, detail) if label]
        rows = []
        for tally, number in found.items():
            if tally.kind is kind:
                values = [(subject, tally.subject), (detail, tally.detail)]
                rows.append(([value for label, value in values if label], number))
        yield _counter(name, text, labels, rows)


def _open_operations(connection: psycopg.Connection) -> Iterator[Metric]:
    """Sum up the keys in progress by operation."""
    numbers: dict[str, int] = defaultdict(int)
    oldest: dict[str, float] = defaultdict(float)
    for each in backlog.open_operations(connection):
        name = _operation_of(each.scope)
        numbers[name] += each.number
        oldest[name] = max(oldest[name], each.oldest)
    yield _gauge(
        "hookonce_operations_in_progress",
        "Keys of requests that are in progress",
        ["operation"],
        numbers,
    )
    yield _gauge(
        "hookonce_oldest_operation_seconds",
        "How long the oldest of them has been",
        ["operation"],
        oldest,
    )


def _operation_of(scope: str) -> str:
    """Return the operation that a scope names beside tenant and actor: '' where it is only a hash of them."""
    if scope.startswith("sha256:"):
        return ""
    return str(json.loads(scope)[0]) if scope.startswith("[") else "api"


def _alerts_and_breakers(connection: psycopg.Connection) -> Iterator[Metric]:
    found = [([alert.kind, alert.subject], 1.0) for alert in alerts.open_alerts(connection)]
    yield _gauge("hookonce_alert", "Alerts that are open", ["kind", "subject"], found)
    never_came = dict.fromkeys(sender_api.listings(connection), 0)
    never_came |= {source: number for source, (number, _) in sender_api.missing_counts(connection).items()}
    yield _gauge(
        "hookonce_missing_events",
        "Events that their sender lists and the ledger has not",
        ["source"],
        never_came,
    )
    failing = breakers.breakers(connection)
    yield _gauge(
        "hookonce_breaker_open",
        "Handlers that failed last: 1 if stopped for it",
        ["handler"],
        [([each.handler], float(each.is_open)) for each in failing],
    )
    yield _gauge(
        "hookonce_waiting_for_breaker",
        "Events that wait for a handler that is stopped",
        ["handler"],
        [([each.handler], float(each.waiting)) for each in failing if each.is_open],
    )
    yield _gauge(
        "hookonce_oldest_waiting_for_breaker_seconds",
        "Age of the oldest of them, since it came",
        ["handler"],
        [([each.handler], each.oldest_waiting_seconds or 0.0) for each in failing if each.is_open],
    )
    waiting = limit_gate.waiting(connection)
    yield _gauge(
        "hookonce_waiting_for_limit", "Runs that are queued for a slot of a limit", ["handler"], waiting
    )
    delays = [([handler], delay.total_seconds()) for handler, delay in limit_gate.delays(connection).items()]
    yield _gauge(
        "hookonce_rate_delay_seconds",
        "How long what comes now waits for a handler's rate",
        ["handler"],
        delays,
    )
    yield from _batches(connection)
    yield from _slots(connection)
    replays, left = backlog.bulk_replays(connection)
    yield _gauge("hookonce_bulk_replays", "Bulk replays under way", [], [([], replays)])
    yield _gauge("hookonce_bulk_replay_events_left", "Events they have still to replay", [], [([], left)])
    yield _gauge(
        "hookonce_counted_timestamp_seconds",
        "Up to when a sweep has counted; old if no sweep runs",
        [],
        [([], source_activity.counted_until(connection))],
    )


def _batches(connection: psycopg.Connection) -> Iterator[Metric]:
    figures = counters.batch_figures(connection)
    for name, text, field in (
        ("hookonce_batches", "Batches that succeeded", "batches"),
        ("hookonce_batch_events", "Events in batches that succeeded", "events"),
        ("hookonce_batch_halvings", "Batches that failed or were lost, and were halved", "halvings"),
    ):
        yield _counter(name, text, ["handler"], {each.handler: getattr(each, field) for each in figures})
    parts = [([each.handler], float(each.waiting)) for each in figures]
    yield _gauge(
        "hookonce_batch_parts_waiting", "Parts of batches to be tried by themselves", ["handler"], parts
    )


def _slots(connection: psycopg.Connection) -> Iterator[Metric]:
    workers = worker_slots.workers(connection)
    states = {"busy": sum(each.busy for each in workers), "lost": sum(each.lost for each in workers)}
    states["free"] = sum(each.slots for each in workers) - sum(states.values())
    yield _gauge("hookonce_slots", "Slots of workers that run many at once", ["state"], states)
    suspects = worker_slots.suspects(connection)
    yield _gauge(
        "hookonce_suspects", "Runs that a dead process had under way, to be run alone", ["handler"], suspects
    )
    longest: dict[str, float] = {}
    for each in worker_slots.long_transactions(connection):
        longest[each.handler] = max(longest.get(each.handler, 0.0), each.seconds)
    yield _gauge(
        "hookonce_long_transaction_seconds",
        "Age of transactions that wrote and wait, the oldest",
        ["handler"],
        longest,
    )


def _filled(
    kind: type[CounterMetricFamily | GaugeMetricFamily],
    name: str,
    text: str,
    labels: Sequence[str],
    rows: Iterable[tuple[Sequence[str], float]] | Mapping[str, float],
) -> Metric:
    """Return a metric with its numbers; those of one label may be told by its value."""
    family = kind(name, text, labels=labels)
    for values, number in rows.items() if isinstance(rows, Mapping) else rows:
        family.add_metric([values] if isinstance(values, str) else values, number)
    return family


_counter = partial(_filled, CounterMetricFamily)
_gauge = partial(_filled, GaugeMetricFamily)
