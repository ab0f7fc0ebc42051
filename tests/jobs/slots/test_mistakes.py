"""Mistakes that many runs at once, and long ones, can be made with: each is planted, and a check must notice."""

from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from threading import Event
from time import monotonic

import pytest
from sqlalchemy import text

from hookonce.jobs.attempts import shared
from hookonce.jobs.attempts.attempt import Executor
from hookonce.jobs.plan import EVERYTHING, Plan
from hookonce.jobs.slots import lost_slots
from hookonce.jobs.slots import pool as pools
from hookonce.jobs.slots.capacity import QUICK, Capacity, ClaimCapacity
from hookonce.jobs.slots.lost_slots import LostSlots
from hookonce.jobs.slots.slot_limit import SlotLimit
from hookonce.jobs.stopping import stopping
from hookonce.receiver.ledger.runs import claims, due_rows, ends, failed_attempts, leases, takeover
from hookonce.receiver.ledger.runs.due_rows import Waiting
from hookonce.receiver.ledger.runs.ends import AttemptResult, Ended
from hookonce.receiver.ledger.runs.takeover import WorkerEnd
from hookonce.receiver.ledger.states import RunStatus, Waits
from tests.jobs.slots.conftest import IMPATIENT
from tests.support.inbox import effect
from tests.support.rewording import reword
from tests.support.waiting import ENOUGH, DeadlineMissed, until

HOUR = timedelta(hours=1)
DONE = AttemptResult(RunStatus.DONE)
SOON = 4.0
"""Seconds: with a mistake in it a story is late in any case."""


def die(inbox):
    """Have whoever is at work die: leases run out, and connections are gone."""
    inbox.connection.execute("UPDATE hookonce.claims SET lease_until = now()")
    takeover.take_over(inbox.connection, WorkerEnd(handlers=inbox.registry))
    inbox.connection.execute("UPDATE hookonce.queue SET due_at = now()")


def claim(inbox):
    return claims.claim(inbox.connection, Plan(inbox.registry, EVERYTHING)).runs


def claim_suspect(inbox):
    wanted = Waiting(Waits.SUSPECT, ["plain"])
    runs = claims.claim(inbox.connection, Plan(inbox.registry), wanted=wanted).runs
    for run in runs:
        leases.note_start(inbox.connection, run)
    return runs[0] if runs else None


def poison(inbox, *_):
    """One of three kills whatever process it is in; it alone is dead in the end, and the others were never charged."""

    def plain(_event, _tx):
        pass

    inbox.on(plain, attempts=2)
    bad, *good = inbox.deliver("bad", "b", "c")
    claim(inbox)
    die(inbox)
    for _ in range(12):
        others = claim(inbox)
        if bad in {run.event.id for run in others}:  # beside others: the process dies
            die(inbox)
            continue
        for run in others:
            ends.end(inbox.connection, Ended([run], [DONE], HOUR))
        run = claim_suspect(inbox)
        if run is None:
            continue
        if run.event.id == bad:
            die(inbox)
        else:
            ends.end(inbox.connection, Ended([run], [DONE], HOUR))
    rows = dict(inbox.rows("SELECT event, (status, attempts)::text FROM hookonce.run_states"))
    assert rows == {bad: "(dead,2)"} | dict.fromkeys(good, "(done,1)")
    assert {row[0] for row in inbox.rows("SELECT event FROM hookonce.failures")} == {bad}


def suspects_nobody(patch):
    reword(patch, takeover, ("coalesce(t.waits, q.waits)", "q.waits"))


def charges_all_that_were_under_way(patch):
    right = takeover.settle_rows

    def settle(connection, claim, left, locked, how):
        return right(connection, claim._replace(is_suspect=True, is_started=True), left, locked, how)

    patch.setattr(takeover, "settle_rows", settle)


def charges_no_suspect(patch):
    right = takeover.settle_rows

    def settle(connection, claim, left, locked, how):
        return right(connection, claim._replace(is_suspect=False), left, locked, how)

    patch.setattr(takeover, "settle_rows", settle)


def runs_suspects_beside_others(patch):
    reword(patch, due_rows, ("waits IS NULL", "(waits IS NULL OR waits = 'suspect')"))


def stale(inbox, *_):
    """A worker that lost its lease writes nothing, neither by its transactions nor at its end."""

    def works(event):
        with event.tx() as tx:
            tx.execute(text("INSERT INTO effects VALUES ('first')"))
        inbox.connection.execute("UPDATE hookonce.queue SET token = gen_random_uuid()")
        with event.tx() as tx:
            tx.execute(text("INSERT INTO effects VALUES ('stale')"))

    inbox.on(works, tx="none")
    inbox.deliver("a")
    inbox.work()
    assert inbox.effects() == ["first"]


def locks_no_token(patch):
    patch.setattr(leases, "lock", lambda *_: None)


def locks_whatever_token(patch):
    reword(patch, leases, ("AND token = %(token)s", ""))


def renewed(inbox, _pool_of, _let_go, seconds):
    """A lease is renewed as long as its claim is ours, and no longer."""
    seen, beats, right = [], [], leases.renew

    def renew(connection, tokens):
        found = right(connection, tokens)
        beats.append(1)
        return found

    def waits(_event):
        inbox.connection.execute("UPDATE hookonce.claims SET lease_until = now() + interval '1 s'")
        left = "SELECT lease_until > now() + interval '20 s' FROM hookonce.claims"
        seen.append(comes(lambda: inbox.rows(left)[0][0], seconds))
        assert seen == [True]
        inbox.connection.execute(
            "UPDATE hookonce.claims SET token = gen_random_uuid(), lease_until = now() + interval '1 s'"
        )
        before = len(beats)
        assert comes(lambda: len(beats) > before, seconds)
        seen.append(inbox.rows(left)[0][0])

    inbox.on(waits, tx="none", timeout=HOUR)
    inbox.deliver("a")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(leases, "renew", renew)
        inbox.work()
    assert seen == [True, False]


def comes(look, seconds):
    """Tell whether something shows within so many seconds."""
    try:
        until(look, seconds=seconds)
    except DeadlineMissed:
        return False
    return True


def renews_nothing(patch):
    patch.setattr(shared.Heartbeat, "beat", lambda *_: None)


def renews_what_is_another_s(patch):
    reword(patch, leases, ("token = ANY(%s) RETURNING", "%s::uuid[] IS NOT NULL RETURNING"))


def stuck(inbox, pool_of, let_go, seconds):
    """A slot that nothing ends has its run ended for it; what it writes later is nobody's. Its neighbours go on."""

    def stays(_event, tx):
        tx.execute(text("INSERT INTO effects VALUES ('stays')"))
        with suppress(BaseException):
            let_go.wait(60)

    def neighbour(event, tx):
        deadline = monotonic() + seconds
        while not put_off.wait(0.01) and monotonic() < deadline:
            pass  # a mistake may raise here: a query on the test's connection would be left half done
        effect(event, tx)

    put_off = Event()
    inbox.on(stays, pattern="stays", timeout=timedelta(seconds=0.3), attempts=2, backoff=(HOUR, HOUR))
    inbox.on(neighbour, pattern="neighbour", timeout=HOUR)
    inbox.deliver("n", type="neighbour")
    inbox.deliver("s", type="stays")
    with pool_of(8, timeouts=IMPATIENT) as pool:
        pool.run_due()
        comes(lambda: ("s", "stays", "waiting", 1) in inbox.runs(), seconds)
        put_off.set()
        until(inbox.runs, [("n", "neighbour", "done", 1), ("s", "stays", "waiting", 1)], seconds=seconds)
    assert inbox.effects() == ["n"]


def lets_a_slot_outlive_its_lease(patch):
    patch.setattr(LostSlots, "end_lost", lambda *_: None)


def ends_a_neighbour_at_the_limit(patch):
    right, limits = SlotLimit.set, []

    def set_all(self):
        right(self)
        limits.append((self, self._deadline))
        for each, _ in limits:
            each._deadline = each._ring_at = min(deadline for _, deadline in limits)  # noqa: SLF001

    patch.setattr(SlotLimit, "set", set_all)


def broken(inbox, pool_of, let_go, seconds):
    """A process that starts anew gives its neighbours' runs back, and charges nobody but who was stuck."""

    def stays(_event, _tx):
        let_go.wait(60)

    def neighbour(_event, tx):
        tx.execute(text("INSERT INTO effects VALUES ('neighbour')"))
        let_go.wait(60)

    inbox.on(stays, pattern="stays", timeout=timedelta(seconds=0.3), attempts=2, backoff=(HOUR, HOUR))
    inbox.on(neighbour, pattern="neighbour", timeout=HOUR)
    inbox.deliver("n", type="neighbour")
    inbox.deliver("s", type="stays")
    with pool_of(4, timeouts=IMPATIENT) as pool:
        pool.run_due()
        until(stopping.is_set, seconds=seconds)
        assert pool.finish() == pools.RESTART
        assert inbox.runs() == [("n", "neighbour", "waiting", 0), ("s", "stays", "waiting", 1)]


def takes_neighbours_along(patch):
    patch.setattr(Executor, "give_back", lambda *_: False)


def counts_what_it_hands_back(patch):
    def fail_rows(connection, token, places, endings, *took):
        return right(connection, token, places, [replace(each, counted=True) for each in endings], *took)

    right = failed_attempts.fail_rows
    patch.setattr(failed_attempts, "fail_rows", fail_rows)


def never_starts_anew(patch):
    patch.setattr(lost_slots, "LOST_SHARE", 0)


def mixed(inbox, pool_of, let_go, seconds):
    """Slow handlers never have all slots."""

    def slow(_event, _tx):
        let_go.wait(60)

    inbox.on(slow, pattern="slow", timeout=HOUR)
    inbox.on(effect, pattern="quick")
    inbox.deliver(*(f"s{n}" for n in range(8)), type="slow")
    with pool_of(3) as pool:
        pool.run_due()
        until(lambda: inbox.rows("SELECT 1 FROM hookonce.run_states WHERE status = 'running'")[1:])
        pool.run_due(inbox.deliver("q", type="quick"))
        until(inbox.effects, ["q"], seconds=seconds)


def keeps_no_slot_for_quick_handlers(patch):
    patch.setattr(ClaimCapacity, "_lane", lambda *_: QUICK)
    patch.setattr(Capacity, "_may_be_slow", lambda *_: False)


STORIES = {
    suspects_nobody: poison,
    charges_all_that_were_under_way: poison,
    charges_no_suspect: poison,
    runs_suspects_beside_others: poison,
    locks_no_token: stale,
    locks_whatever_token: stale,
    renews_nothing: renewed,
    renews_what_is_another_s: renewed,
    lets_a_slot_outlive_its_lease: stuck,
    ends_a_neighbour_at_the_limit: stuck,
    takes_neighbours_along: broken,
    counts_what_it_hands_back: broken,
    never_starts_anew: broken,
    keeps_no_slot_for_quick_handlers: mixed,
}


@pytest.fixture(autouse=True)
def hurried(monkeypatch):
    monkeypatch.setattr(leases, "RENEW_INTERVAL", timedelta(seconds=0.05))


@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)  # a mistake may leave things open
@pytest.mark.parametrize("mistake", STORIES, ids=lambda each: each.__name__)
def test_planted_mistake_is_caught(inbox, pool_of, let_go, monkeypatch, mistake):
    mistake(monkeypatch)

    with pytest.raises((AssertionError, DeadlineMissed)):
        STORIES[mistake](inbox, pool_of, let_go, SOON)


@pytest.mark.parametrize(
    "story", sorted(set(STORIES.values()), key=lambda each: each.__name__), ids=lambda each: each.__name__
)
def test_story_passes_without_a_mistake(inbox, pool_of, let_go, story):
    story(inbox, pool_of, let_go, ENOUGH)
