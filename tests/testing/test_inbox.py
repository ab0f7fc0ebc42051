"""The bench itself: what it makes, and that its assertions fail where they should (planted mistakes)."""

import time
from datetime import timedelta

import pytest
from sqlalchemy import text

from hookonce import GiveUp, RetryLater, on
from hookonce.jobs import claimer, handlers
from hookonce.testing import crash_at, dead_with, event, handled_once, ignored, inbox


def handler(act, **options):
    """Register a handler for paid invoices that writes a row, then does `act`."""
    options = {"name": "shop.credit", "attempts": 3} | options

    @on("stripe", "invoice.paid", **options)
    def credit(event, tx):
        tx.execute(text("INSERT INTO effects VALUES (:event)"), {"event": event.event_id})
        return act(event)

    return credit


def fail(_event):
    raise LookupError("no such customer")


def test_event_is_changed_where_it_is_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hookonce.toml").write_text('[sources.shop]\nprovider = "stripe"\n')

    made = event(
        "shop",
        "invoice.paid",
        set={"data.object.amount_paid": 1, "data.object.note": "7"},
        remove=["livemode"],
        event_id="evt_1",
        attempt=2,
    )

    assert (made.event_id, made.source, made.provider, made.attempt) == ("evt_1", "shop", "stripe", 2)
    assert made.data["data"]["object"]["amount_paid"] == 1
    assert made.data["data"]["object"]["note"] == "7"  # a text stays one
    assert "livemode" not in made.data
    with pytest.raises(LookupError, match=r"did you mean 'invoice\.paid'"):
        event("stripe", "invoice.payd")
    with pytest.raises(ValueError, match="it has"):
        event("stripe", "invoice.paid", remove=["nothing.here"])


def test_all_that_is_due_is_run_however_long_it_takes(bench, monkeypatch):
    monkeypatch.setattr(claimer, "DRAIN_BUDGET", timedelta(milliseconds=100))
    handler(lambda _: time.sleep(0.06))
    for _ in range(5):
        bench.deliver("stripe", "invoice.paid", work=False)

    assert bench.work() == 5


def test_run_that_is_due_again_for_ever_is_told(bench, monkeypatch):
    monkeypatch.setattr(inbox, "_LONGEST_DRAIN", timedelta(seconds=1))
    monkeypatch.setattr(claimer, "DRAIN_BUDGET", timedelta(milliseconds=500))

    def again(_event):
        raise RetryLater(0)

    handler(again)

    with pytest.raises(AssertionError, match="put off its run by 0 s"):
        bench.deliver("stripe", "invoice.paid")


def test_delivery_is_a_real_one(bench):
    handler(lambda _: {"ok": True})

    paid = bench.deliver("stripe", "invoice.paid", times=3)
    forged = bench.deliver("stripe", "invoice.paid", forge=True)

    assert handled_once(paid).result == {"ok": True}
    assert 1 <= paid.detail.event.deliveries <= 3  # counted a moment later
    assert (forged.status, forged.number) == (401, None)
    with pytest.raises(AssertionError, match=r"the ledger has no event .* answered 401"):
        handled_once(forged)


def test_replay_runs_what_is_dead_and_leaves_what_is_done(bench):
    calls = []

    def fail_at_first(event):
        calls.append(event.idempotency_key)
        if len(calls) == 1:
            raise GiveUp("not yet")

    handler(fail_at_first)
    paid = bench.deliver("stripe", "invoice.paid")
    dead_with(paid, GiveUp)

    assert bench.replay(paid) == "replayed"
    assert bench.replay(paid) == "already_done"
    assert paid.detail.runs[0].status == "done"
    assert bench.replay(paid, again=True) == "replayed"

    assert len(calls) == 3
    assert len(set(calls)) == 1
    assert paid.detail.runs[0].cycle == 3


@pytest.mark.parametrize(
    ("act", "assertion", "said"),
    [
        (
            fail,
            handled_once,
            "shop.credit is waiting, not done(.|\n)*no such customer.*; it waits: it failed, and is tried again",
        ),
        (lambda _: None, lambda paid: dead_with(paid, "no such"), "nothing is dead"),
        (lambda _: None, ignored, "it is done, not ignored"),
        (lambda _: None, lambda paid: handled_once(paid, "another"), "no handler 'another' has run"),
    ],
)
def test_assertion_fails_where_it_should_and_says_what_the_ledger_knows(bench, act, assertion, said):
    handler(act)
    paid = bench.deliver("stripe", "invoice.paid")

    with pytest.raises(AssertionError, match=said):
        assertion(paid)


def shown(caught):
    """Return how many frames pytest shows of an error."""
    return len(caught.traceback.filter(caught))


def test_failed_test_shows_the_event_and_frames_of_the_handler_and_none_of_ours(bench):
    handler(fail, attempts=1)
    paid = bench.deliver("stripe", "invoice.paid")

    with pytest.raises(AssertionError) as caught:
        handled_once(paid)

    said = str(caught.value)
    assert 'raise LookupError("no such customer")' in said
    assert "shop.credit: dead after 1 attempt, " in said
    assert f'"{paid.event_id}"' in said.partition("\nbody: ")[2]
    assert "hookonce/jobs" not in said
    assert shown(caught) == 1


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        (lambda bench: bench.deliver("stripe", "invoice.payd"), "did you mean 'invoice.paid'"),
        (lambda bench: bench.deliver("strip"), "did you mean 'stripe'"),
        (lambda bench: bench.deliver("stripe", remove=["nothing.here"]), "cannot remove nothing.here"),
        (lambda bench: bench.clock.advance(timedelta(-1)), "time can only pass"),
    ],
)
def test_mistake_of_a_test_is_shown_at_the_line_of_the_test(bench, mistake, said):
    with pytest.raises((LookupError, ValueError), match=said) as caught:
        mistake(bench)

    assert shown(caught) == 2


def test_assertion_of_a_death_looks_at_the_error(bench):
    @on("stripe", "invoice.paid", name="shop.credit")
    def credit(_event, _tx):
        raise GiveUp("an invoice of nobody")

    paid = bench.deliver("stripe", "invoice.paid")

    assert dead_with(paid, GiveUp).attempts == 1
    dead_with(paid, "of nobody")
    for wrong in (LookupError, "of somebody"):
        with pytest.raises(AssertionError, match="it is dead, and not with"):
            dead_with(paid, wrong)


def test_replayed_event_was_not_handled_once(bench):
    handler(lambda _: None)
    paid = bench.deliver("stripe", "invoice.paid")
    bench.execute("UPDATE hookonce.runs SET cycle = 2")

    with pytest.raises(AssertionError, match="run 2 times over"):
        handled_once(paid)


def test_time_that_passes_makes_retries_due_and_signatures_old(bench):
    handler(fail, backoff=(3600, 3600))
    paid = bench.deliver("stripe", "invoice.paid")

    assert bench.work() == 0
    bench.clock.advance(timedelta(minutes=61))
    assert bench.work() == 1
    assert bench.settle() == 1
    assert dead_with(paid, LookupError).attempts == 3
    with pytest.raises(ValueError, match="time can only pass"):
        bench.clock.advance(-1)


@pytest.mark.parametrize(
    "failpoint", ["delivery.parsed", "ledger.committed", "run.leased", "handler.returned", "run.ended"]
)
def test_crash_loses_nothing_and_doubles_nothing(bench, failpoint):
    handler(lambda _: None)

    with crash_at(bench, failpoint):
        bench.deliver("stripe", "invoice.paid", event_id="evt_1")
        pytest.fail("it should have died")
    paid = bench.deliver("stripe", "invoice.paid", event_id="evt_1")
    bench.settle()

    handled_once(paid)
    assert bench.execute("SELECT event FROM effects") == [("evt_1",)]


def test_crash_that_does_not_happen_fails_the_test(bench):
    handler(lambda _: None)

    with (
        pytest.raises(AssertionError, match=r"not reached 1 times; reached were delivery\.read.*run"),
        crash_at(bench, "sweep.found"),
    ):
        bench.deliver("stripe", "invoice.paid", event_id="evt_1")

    assert bench.execute("SELECT event FROM effects") == [("evt_1",)]  # done, in the other process
    with pytest.raises(LookupError, match="no failpoint is called 'nonsense'"), crash_at(bench, "nonsense"):
        pass


def test_handler_that_commits_by_itself_is_found_by_a_crash(bench):
    """The mistake: an effect apart from the transaction, which the crash leaves behind and the retry doubles."""

    def effect_apart(event):
        bench.execute("INSERT INTO effects VALUES (%s)", f"apart {event.event_id}")

    handler(effect_apart)
    with crash_at(bench, "handler.returned"):
        bench.deliver("stripe", "invoice.paid", event_id="evt_1")
    bench.settle()

    assert bench.execute("SELECT count(*) FROM effects WHERE event = 'apart evt_1'") == [(2,)]
    assert bench.execute("SELECT count(*) FROM effects WHERE event = 'evt_1'") == [(1,)]


def test_only_the_chosen_handlers_work(bench):
    chosen = handler(lambda _: None)
    handler(fail, name="shop.other")

    bench.use(chosen)
    paid = bench.deliver("stripe", "invoice.paid")

    assert [run.handler for run in paid.detail.runs] == ["shop.credit"]
    with pytest.raises(ValueError, match="decorated with @on"):
        bench.use(fail)


def test_handlers_of_a_test_are_forgotten_with_its_inbox(bench):
    before = len(handlers.registry)
    handler(lambda _: None)

    bench.close()

    assert len(handlers.registry) == before


def test_sender_whose_secret_nobody_can_make_up_can_not_be_delivered(bench):
    with pytest.raises(ValueError, match="call the handler with event"):
        bench.deliver("apple_app_store")
