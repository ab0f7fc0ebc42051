"""Checks a history: what senders were answered and what handlers did, against what the ledger holds at last.

`check` is a pure function. It wants to know nothing of how the history came about: a crash loop, a soak with
kills, or a table of made-up histories. It gives every broken promise by the name of the check that noticed.

Write down every delivery, answered or not; every entry of a handler, outside its transaction; and every
effect, inside it. `faults` is how often something happened that may cut attempts off: a worker killed or cut
off from the ledger, a lease that was made to run out, a reply lost. What was under way then is entered once more than
it is charged: it is charged only if that happens again while it is run alone. `suspects` are runs that were to be run
alone, where somebody has looked, and how often each had been entered by then.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from hashlib import sha256
from typing import NamedTuple

LEASE_RAN_OUT = "the worker stopped, or took longer than its lease"
FINAL = ("GiveUp", "BodyDropped")
VERDICTS = (
    (b"commit", "CommitRefused"),
    (b"commit", "TransactionReplaced"),
    (b"roll_back", "TransactionReplaced"),
)
"""Final for a handler that was to end its transaction by itself; Django's is dead after a rollback, too."""
ENDED = {"done", "dead", "ignored", "held"}

Key = tuple[str, str]
"""Source and event id."""


class Plan(NamedTuple):
    """What the user registered: this handler takes these events and may be attempted so often.

    `is_long`: it commits by itself, so that what it wrote stays though its attempt did not end well.
    """

    handler: str
    source: str
    pattern: str
    attempts: int
    is_long: bool = False


class Sent(NamedTuple):
    """One event of a delivery: its id, its type, its own bytes, and its body without what may change."""

    event_id: str
    type: str
    raw: bytes
    fingerprint: bytes


@dataclass(frozen=True)
class Delivery:
    """One request. `status` is None where no answer came; `verdicts` is the answer's word on each event id."""

    source: str
    events: Sequence[Sent]
    status: int | None
    verdicts: Mapping[str, str] = field(default_factory=dict)
    is_authentic: bool = True


class Entry(NamedTuple):
    """A handler was entered; written outside its transaction, so it stays whatever happens next.

    `counted` is False where it then raises RetryLater, which uses no attempt up.
    """

    source: str
    event_id: str
    handler: str
    attempt: int
    counted: bool = True


class Effect(NamedTuple):
    """What a handler wrote through its transaction; `digest` is the SHA-256 (hex) of the bytes it was given."""

    source: str
    event_id: str
    handler: str
    attempt: int
    digest: str


@dataclass
class History:
    """What happened, as the world outside saw it."""

    deliveries: list[Delivery] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    faults: int = 0
    suspects: list[tuple[str, str, str, int]] = field(default_factory=list)


class Row(NamedTuple):
    """An event as the ledger holds it; `raw` is None where there is no body."""

    source: str
    event_id: str
    type: str
    status: str
    deliveries: int
    fingerprint: bytes
    raw: bytes | None


class Run(NamedTuple):
    """A run as the ledger holds it."""

    source: str
    event_id: str
    handler: str
    status: str
    attempts: int
    cycle: int


class Failure(NamedTuple):
    """A failed attempt as the ledger holds it."""

    source: str
    event_id: str
    handler: str
    cycle: int
    attempt: int
    error: str


class Conflict(NamedTuple):
    """Another body under a known id, as the ledger holds it."""

    source: str
    event_id: str
    fingerprint: bytes
    raw: bytes


@dataclass
class Ledger:
    """What the ledger holds."""

    rows: list[Row] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    conflicts: list[Conflict] = field(default_factory=list)
    dropped_bodies: bool = False
    """Whether retention has been at work: then a row without its body is no loss."""


class Violation(NamedTuple):
    """A broken promise: the check that noticed, and what it saw."""

    check: str
    what: str


Findings = Iterator[str]


def check(
    history: History, ledger: Ledger, plans: Sequence[Plan], *, at_rest: bool = True
) -> list[Violation]:
    """Give every broken promise; none is a proof for this history.

    `at_rest`: senders have retried what got no 2xx, and workers were given the time to end everything.
    """
    evidence = Evidence(history, ledger, plans)
    checks = CHECKS if at_rest else CHECKS - AT_REST
    return [
        Violation(name.removeprefix("_"), what)
        for name, judge in sorted((judge.__name__, judge) for judge in checks)
        for what in judge(evidence)
    ]


@dataclass
class Evidence:
    """The history and the ledger, sorted by event."""

    history: History
    ledger: Ledger
    plans: Sequence[Plan]

    @cached_property
    def row(self) -> dict[Key, Row]:
        """The row of each event."""
        return {(row.source, row.event_id): row for row in self.ledger.rows}

    @cached_property
    def sent(self) -> dict[Key, list[tuple[Delivery, Sent]]]:
        """What authentic senders sent under each id, in order."""
        sent = defaultdict(list)
        for delivery in self.history.deliveries:
            if delivery.is_authentic:
                for event in delivery.events:
                    sent[delivery.source, event.event_id].append((delivery, event))
        return sent

    @cached_property
    def promised(self) -> list[tuple[Key, Sent]]:
        """What was answered with 2xx."""
        return [
            ((delivery.source, event.event_id), event)
            for delivery in self.history.deliveries
            if is_taken(delivery)
            for event in delivery.events
        ]

    @cached_property
    def others(self) -> dict[Key, dict[bytes, bytes]]:
        """The kept other bodies of each event by fingerprint."""
        others: dict[Key, dict[bytes, bytes]] = defaultdict(dict)
        for conflict in self.ledger.conflicts:
            others[conflict.source, conflict.event_id][conflict.fingerprint] = conflict.raw
        return others

    @cached_property
    def entries(self) -> Counter[tuple[str, str, str]]:
        """How often each handler was entered for each event, for an attempt that counts."""
        return Counter((e.source, e.event_id, e.handler) for e in self.history.entries if e.counted)

    @cached_property
    def effects(self) -> dict[tuple[str, str, str], list[Effect]]:
        """The effects of each run."""
        effects = defaultdict(list)
        for effect in self.history.effects:
            effects[effect.source, effect.event_id, effect.handler].append(effect)
        return effects

    def limit(self, handler: str) -> int:
        """How often a handler may be attempted."""
        return next(plan.attempts for plan in self.plans if plan.handler == handler)

    def is_long(self, handler: str) -> bool:
        """Whether a handler commits by itself."""
        return any(plan.is_long for plan in self.plans if plan.handler == handler)

    def wanted(self, row: Row) -> set[str]:
        """The handlers that take an event."""
        return {p.handler for p in self.plans if p.source == row.source and fnmatchcase(row.type, p.pattern)}


def is_taken(delivery: Delivery) -> bool:
    """Whether the sender was told that we have it."""
    return delivery.status is not None and delivery.status // 100 == 2


def _lost(evidence: Evidence) -> Findings:
    """What got a 2xx is in the ledger, once."""
    for key in dict.fromkeys(key for key, _ in evidence.promised):
        if key not in evidence.row:
            yield f"{key} got a 2xx and is not in the ledger"
    for key, row in evidence.row.items():
        if row.status == "lost":
            yield f"{key} is in the ledger, and neither to be done nor ended"
    counted = Counter((row.source, row.event_id) for row in evidence.ledger.rows)
    yield from (f"{key} is in the ledger {count} times" for key, count in counted.items() if count > 1)


def _other_bytes(evidence: Evidence) -> Findings:
    """A row has its body: bytes that were sent under its id, and those of the delivery that was accepted."""
    for key, row in evidence.row.items():
        if row.raw is None:
            if not evidence.ledger.dropped_bodies:
                yield f"{key} has no body"
            continue
        fits = [event for _, event in evidence.sent.get(key, []) if event.raw == row.raw]
        if not fits and key in evidence.sent:
            yield f"{key} has a body that nobody sent"
        if fits and fits[0].fingerprint != row.fingerprint:
            yield f"{key} has a body that its fingerprint is not of"
        accepted = _accepted(evidence, key)
        if accepted and accepted[0].fingerprint != row.fingerprint:
            yield f"{key} has another body than the one that was accepted"


def _accepted_twice(evidence: Evidence) -> Findings:
    """One delivery at most hears that its event is new."""
    for key in evidence.sent:
        if len(_accepted(evidence, key)) > 1:
            yield f"{key} was answered `accepted` more than once"


def _intruder(evidence: Evidence) -> Findings:
    """What was refused, or never sent, left no row, no body, no effect."""
    known = {key: {event.raw for _, event in sent} for key, sent in evidence.sent.items()}
    for key in evidence.row:
        if key not in known:
            yield f"{key} is in the ledger and was never sent by who may"
    for conflict in evidence.ledger.conflicts:
        if conflict.raw not in known.get((conflict.source, conflict.event_id), ()):
            yield f"({conflict.source}, {conflict.event_id}) has a conflict that nobody sent"
    for source, event_id, handler in {*evidence.effects, *evidence.entries}:
        if (source, event_id) not in evidence.row:
            yield f"({source}, {event_id}) is not in the ledger, but {handler} ran for it"


def _refused_though_genuine(evidence: Evidence) -> Findings:
    """A 4xx tells a sender not to come again: who may send never gets one."""
    for delivery in evidence.history.deliveries:
        if delivery.is_authentic and delivery.status is not None and delivery.status // 100 == 4:
            yield f"a genuine delivery to {delivery.source} was refused with {delivery.status}"
        if not delivery.is_authentic and is_taken(delivery):
            yield f"a forged delivery to {delivery.source} was answered {delivery.status}"


def _conflict_lost(evidence: Evidence) -> Findings:
    """Another body under a known id that got a 2xx is kept, byte for byte or but for what may change."""
    for key, event in evidence.promised:
        row = evidence.row.get(key)
        if row and event.fingerprint not in {row.fingerprint, *evidence.others[key]}:
            yield f"{key} came with another body, which was answered 2xx and not kept"


def _false_conflict(evidence: Evidence) -> Findings:
    """A retry is not taken for a substitution because its sender counted something in it."""
    for key, others in evidence.others.items():
        genuine = {event.fingerprint for _, event in evidence.sent.get(key, [])}
        if key in evidence.row and set(others) & {evidence.row[key].fingerprint}:
            yield f"{key} is in conflict with itself"
        if set(others) - genuine:
            yield f"{key} is in conflict with a body that was never sent"


def _miscounted_deliveries(evidence: Evidence) -> Findings:
    """An event is not said to have come more often than it did."""
    for key, row in evidence.row.items():
        most = len(evidence.sent.get(key, ())) + evidence.history.faults
        if key in evidence.sent and not 1 <= row.deliveries <= most:
            yield f"{key} has {row.deliveries} deliveries, {len(evidence.sent[key])} were made"


def _unfinished(evidence: Evidence) -> Findings:
    """At rest every event has ended, and so has a run of each handler that takes it."""
    runs = {(run.source, run.event_id, run.handler) for run in evidence.ledger.runs}
    for key, row in evidence.row.items():
        if row.status not in ENDED:
            yield f"{key} is {row.status} and nobody works on it"
        missing = {handler for handler in evidence.wanted(row) if (*key, handler) not in runs}
        if missing and row.status not in {"received", "held"}:
            yield f"{key} is {row.status} without a run of {', '.join(sorted(missing))}"
    for run in evidence.ledger.runs:
        if run.status not in ENDED:
            yield f"{run[:3]} is {run.status} and nobody works on it"


def _unpromised(evidence: Evidence) -> Findings:
    """At rest every genuine event got its 2xx: the senders came again until they did."""
    promised = {key for key, _ in evidence.promised}
    yield from (f"{key} never got a 2xx" for key in evidence.sent if key not in promised)


def _doubled(evidence: Evidence) -> Findings:
    """A handler's effects on an event happen once per cycle."""
    cycles = {(run.source, run.event_id, run.handler): run.cycle for run in evidence.ledger.runs}
    for run, effects in evidence.effects.items():
        if len(effects) > cycles.get(run, 1):
            yield f"{run} took effect {len(effects)} times"


def _ended_twice(evidence: Evidence) -> Findings:
    """A handler's run is open, or has ended; whatever became of the cycles before, it says one thing."""
    counted = Counter(run[:3] for run in evidence.ledger.runs)
    yield from (f"{run} is there {count} times" for run, count in counted.items() if count > 1)


def _effect_lost(evidence: Evidence) -> Findings:
    """What is done has its effect, and what is not done has none."""
    for run in evidence.ledger.runs:
        effects = evidence.effects.get(run[:3], [])
        if run.status == "done" and not effects:
            yield f"{run[:3]} is done without its effect"
        may_stay = evidence.is_long(run.handler)
        if run.status != "done" and effects and run.cycle == 1 and not may_stay:
            yield f"{run[:3]} is {run.status} and took effect"


def _stale_finish(evidence: Evidence) -> Findings:
    """What takes effect is the attempt that holds the lease, which is the last one counted."""
    for run in evidence.ledger.runs:
        if evidence.is_long(run.handler):
            continue
        effects = evidence.effects.get(run[:3], [])
        if run.status == "done" and effects and effects[-1].attempt != run.attempts:
            yield f"{run[:3]} is at attempt {run.attempts}, its effect is of {effects[-1].attempt}"


def _wrong_bytes(evidence: Evidence) -> Findings:
    """A handler is given the bytes that the ledger holds."""
    for effect in evidence.history.effects:
        row = evidence.row.get((effect.source, effect.event_id))
        if row and row.raw is not None and sha256(row.raw).hexdigest() != effect.digest:
            yield f"{effect[:3]} was given other bytes than the ledger's"


def _overrun(evidence: Evidence) -> Findings:
    """No run is attempted, nor its handler entered, more often than its limit."""
    for run in evidence.ledger.runs:
        limit = evidence.limit(run.handler)
        if run.attempts > limit:
            yield f"{run[:3]} was attempted {run.attempts} times of {limit}"
        given_back = evidence.history.faults
        if run.cycle == 1 and evidence.entries[run[:3]] > limit + given_back:
            yield f"{run[:3]} was entered {evidence.entries[run[:3]]} times of {limit}"


def _dead_early(evidence: Evidence) -> Findings:
    """A run is dead after its last attempt or a final verdict, and says why; of a commit, if its handler made one."""
    errors = defaultdict(list)
    for failure in evidence.ledger.failures:
        errors[failure[:4]].append(failure)
    for run in evidence.ledger.runs:
        failures = errors[(*run[:3], run.cycle)]
        if run.status != "dead":
            continue
        if not failures:
            yield f"{run[:3]} is dead and does not say why"
            continue
        told = [event.raw for _, event in evidence.sent[run[:2]]]
        final = FINAL + tuple(
            verdict for word, verdict in VERDICTS if any(b'"%s"' % word in raw for raw in told)
        )
        if run.attempts < evidence.limit(run.handler) and not failures[-1].error.startswith(final):
            yield f"{run[:3]} is dead after {run.attempts} of {evidence.limit(run.handler)} attempts"


def _overcharged(evidence: Evidence) -> Findings:
    """A worker that dies costs one attempt of one run at most, and nothing the first time."""
    charged = {
        run[:3]: run.attempts - evidence.entries[run[:3]] for run in evidence.ledger.runs if run.cycle == 1
    }
    more = {run: count for run, count in charged.items() if count > 0}
    if sum(more.values()) > _that_may_charge(evidence):
        yield f"{evidence.history.faults} faults cost attempts of {', '.join(map(str, more))}"


def _that_may_charge(evidence: Evidence) -> int:
    """Return how many faults may have cost an attempt: what the first one cut off was not run alone."""
    return max(evidence.history.faults - 1, 0)


def _wrongly_suspected(evidence: Evidence) -> Findings:
    """What is to be run alone was under way in a worker that died."""
    for *run, entered in evidence.history.suspects:
        if not entered:
            yield f"{run} is to be run alone, though it was not under way"


def _lease_taken(evidence: Evidence) -> Findings:
    """A lease runs out by a fault, never under a healthy worker."""
    taken = [failure for failure in evidence.ledger.failures if failure.error == LEASE_RAN_OUT]
    if len(taken) > _that_may_charge(evidence):
        yield f"{len(taken)} leases ran out, but there were {evidence.history.faults} faults"
    for run in evidence.ledger.runs if not evidence.history.faults else ():
        if run.cycle == 1 and run.status in ENDED and evidence.entries[run[:3]] > run.attempts:
            yield f"{run[:3]} was entered {evidence.entries[run[:3]]} times at attempt {run.attempts}"


def _failed_twice(evidence: Evidence) -> Findings:
    """An attempt fails once, and what failed is the attempt that holds the lease."""
    counted = Counter(failure[:5] for failure in evidence.ledger.failures)
    for failure, count in counted.items():
        if count > 1:
            yield f"{failure[:3]}: attempt {failure[4]} failed {count} times"
    for failure in evidence.ledger.failures:
        _, found, said = failure.error.partition("at attempt ")
        number = said.partition(" (")[0]
        if found and number != str(failure.attempt):
            yield f"{failure[:3]}: attempt {failure.attempt} has the error of attempt {number}"


def _accepted(evidence: Evidence, key: Key) -> list[Sent]:
    return [
        event
        for delivery, event in evidence.sent[key]
        if is_taken(delivery) and delivery.verdicts.get(event.event_id) == "accepted"
    ]


Judge = Callable[[Evidence], Iterable[str]]
AT_REST: frozenset[Judge] = frozenset({_unfinished, _unpromised})
CHECKS: frozenset[Judge] = AT_REST | {
    _accepted_twice,
    _conflict_lost,
    _dead_early,
    _doubled,
    _effect_lost,
    _ended_twice,
    _failed_twice,
    _false_conflict,
    _intruder,
    _lease_taken,
    _lost,
    _miscounted_deliveries,
    _other_bytes,
    _overcharged,
    _overrun,
    _refused_though_genuine,
    _stale_finish,
    _unpromised,
    _wrong_bytes,
    _wrongly_suspected,
}
