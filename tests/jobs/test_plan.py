"""The plan of a claim: one decision for each run of each due row, whatever is paused, limited, known or in the way."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from hookonce.jobs.handlers import Handler, Registry
from hookonce.jobs.plan import EVERYTHING, UNKNOWN_HANDLER_PAUSE, Plan
from hookonce.receiver.ledger.runs.claimed import ClaimedEvent, QueuedRun
from hookonce.receiver.ledger.runs.decisions import ClaimContext, Decision
from hookonce.receiver.ledger.runs.run_limits import BatchSize
from hookonce.receiver.ledger.states import Waits

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TAKERS = {"one": ["a"], "two": ["a", "b"], "batch": ["c"], "both": ["a", "c"], "none": []}
"""By type of event, the handlers that take it; `c` takes batches."""
KNOWN = ["a", "b", "c"]


def registry():
    made = Registry()
    for name in KNOWN:
        for kind, takers in TAKERS.items():
            if name in takers:
                batch = BatchSize(10) if name == "c" else None
                options = {"attempts": 3, "backoff": (timedelta(0),) * 2, "timeout": timedelta(seconds=5)}
                made.add(Handler(name, "shop", kind, print, batch=batch, **options))
    return made


REGISTRY = registry()


def row(number, kind, handler, attempts, waits=None):
    values = dict.fromkeys(ClaimedEvent._fields) | {
        "id": number,
        "source": "shop",
        "provider": "p",
        "type": kind,
    }
    return QueuedRun(
        ClaimedEvent(**values), 0 if handler is None else 3, handler, 1, attempts, NOW, waits, None, None
    )


ROWS = st.lists(
    st.tuples(
        st.sampled_from(sorted(TAKERS)),
        st.sampled_from([None, *KNOWN, "unknown"]),
        st.integers(0, 2),
        st.sampled_from([None, None, Waits.BATCH, "batch:0002:1", Waits.SUSPECT]),
    ),
    max_size=8,
).map(
    lambda found: [
        row(number, kind, handler, attempts if handler else 0, waits if handler else None)
        for number, (kind, handler, attempts, waits) in enumerate(found)
    ]
)
PAUSED = st.builds(
    ClaimContext,
    handlers=st.frozensets(st.sampled_from([*KNOWN, "unknown"])),
    trials=st.frozensets(st.tuples(st.integers(0, 7), st.sampled_from(KNOWN))),
)


class RoomForSome:
    """Leaves every other run."""

    slots = 2

    def lanes(self, handlers):
        return [None if number % 2 else number % 3 for number in range(len(handlers))]


def runs_of(each):
    if each.handler is not None:
        return [(each.event.id, each.n, each.handler)]
    names = TAKERS[each.event.type]
    return [(each.event.id, number, name) for number, name in enumerate(names)] or [(each.event.id, 0, "")]


@given(ROWS, PAUSED, st.sampled_from([EVERYTHING, RoomForSome()]))
def test_each_run_gets_one_decision_and_nothing_paused_is_leased(rows, paused, room):
    planned = Plan(REGISTRY, room)(rows, paused)

    assert [(*each.key, each.handler) for each in planned] == [run for each in rows for run in runs_of(each)]
    assert len({each.key for each in planned}) == len(planned)
    for each in planned:
        is_trial = (each.row.event.id, each.handler) in paused.trials
        is_paused = each.handler in paused.handlers and not is_trial
        is_batch = each.handler == "c" and not (each.row.attempts or is_trial or each.row.waits)
        expected = (
            (Decision.IGNORE, None, None)
            if not each.handler
            else (Decision.WAIT, Waits.HANDLER, None)
            if is_paused
            else (Decision.WAIT, None, UNKNOWN_HANDLER_PAUSE)
            if each.handler == "unknown"
            else (Decision.WAIT, Waits.BATCH, None)
            if is_batch
            else (each.decision, None, None)
        )
        assert (each.decision, each.waits, each.delay) == expected
        assert each.decision in {Decision.LEASE, Decision.LEAVE} or expected[0] is each.decision


@given(ROWS, PAUSED)
def test_room_leaves_what_it_has_no_lane_for_and_nothing_else(rows, paused):
    wanted = [
        each.key for each in Plan(REGISTRY, EVERYTHING)(rows, paused) if each.decision is Decision.LEASE
    ]

    planned = {each.key: each for each in Plan(REGISTRY, RoomForSome())(rows, paused)}

    lanes = RoomForSome().lanes(wanted)
    for key, lane in zip(wanted, lanes, strict=True):
        decision = Decision.LEAVE if lane is None else Decision.LEASE
        assert (planned[key].decision, planned[key].lane) == (decision, lane or 0)
