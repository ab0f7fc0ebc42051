import pytest

from hookonce.receiver.ledger.replay import events
from tests.support.stories import scenarios
from tests.support.stories.lab import keys_of
from tests.support.stories.sending import stripe

RECEIVING, WORKING = scenarios.day_of_deliveries, scenarios.day_of_work
CUTS = {
    "after verify": ("delivery.verified", RECEIVING),
    "after the window claim": ("window.claimed", RECEIVING),
    "inside the ledger transaction": ("ledger.inserted", scenarios.day_of_batches),
    "after COMMIT before settle": ("ledger.committed", RECEIVING),
    "after settle before the bell": ("window.settled", RECEIVING),
    "after the bell": ("bell.rung", RECEIVING),
    "before the answer is sent": ("delivery.answered", RECEIVING),
    "worker inside its takeover": ("claim.taken_over", scenarios.day_after_a_death),
    "worker inside its claim": ("run.leased", WORKING),
    "worker after claim": ("run.claimed", WORKING),
    "inside the handler": ("handler.entered", WORKING),
    "after an external effect, before commit": ("handler.returned", WORKING),
    "inside the finish": ("run.ended", WORKING),
    "after commit, before RQ's ack": ("run.committed", WORKING),
    "after the answer to the bell, before RQ's ack": ("job.ended", WORKING),
}


STORIES = (
    scenarios.reply_of_the_window_lost,
    scenarios.reply_to_the_insert_lost,
    scenarios.reply_to_the_claim_lost,
    scenarios.reply_to_the_finish_lost,
    scenarios.stale_worker_goes_on,
    scenarios.stale_worker_of_a_suspect_goes_on,
    scenarios.stale_worker_fails,
    scenarios.attempt_takes_longer_than_its_lease,
    scenarios.worker_dies_in_the_midst_of_its_claim,
    scenarios.copies_at_once,
    scenarios.other_body_under_one_id,
    scenarios.clocks_disagree,
    scenarios.two_workers_at_once,
    scenarios.hurried_worker,
    scenarios.handler_that_commits_itself,
    scenarios.handler_that_commits_itself_and_dies,
    scenarios.handler_that_rolls_back,
)


@pytest.mark.long  # the crash loops cut at each step in each run
@pytest.mark.parametrize(("point", "day"), CUTS.values(), ids=CUTS)
def test_process_that_dies_at_this_point_costs_nothing(lab, point, day):
    scenarios.cut_at(lab, point, day)

    assert lab.violations() == []


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_every_event_is_kept_and_handled_once_when(lab, story):
    story(lab)

    assert lab.violations() == []


def test_external_effect_is_repeated_under_the_same_key(lab):
    scenarios.cut_at(lab, "handler.returned", scenarios.day_of_work)

    assert max(entry.attempt for entry in lab.history_now().entries) > 1
    assert {len(keys) for keys in keys_of(lab.directory).values()} == {1}


def test_poison_is_dead_after_its_last_attempt_and_harms_nobody(lab):
    scenarios.poison_kills_its_workers(lab)

    assert lab.violations() == []
    assert lab.runs("parcel_poison") == [("track", "dead", 4)]
    assert lab.runs("parcel_%", but="parcel_poison") == [("track", "done", 1)] * 6


def test_stopped_worker_finishes_its_attempt_and_lets_go_of_the_rest(lab):
    scenarios.worker_is_asked_to_stop(lab)

    assert lab.runs("evt_slow") == [("credit", "done", 1)]
    assert lab.runs("parcel_%") == [("track", "waiting", 0)] * 5
    lab.ring()
    lab.work()
    assert lab.violations() == []


def test_late_retry_is_a_duplicate_when_the_body_is_long_gone(lab):
    answer = scenarios.retention_then_a_late_retry(lab)

    assert answer.verdicts == {"evt_old": "duplicate"}
    assert lab.violations(dropped_bodies=True) == []


def test_replay_asked_for_twice_is_one_new_cycle(lab):
    lab.insist(stripe("evt_again", "invoice.sent"))
    lab.recover()
    (event,) = lab.sql.execute("SELECT id FROM hookonce.event_states").fetchone()

    fates = [outcome.fate for _ in range(2) for outcome in events.replay(lab.sql, [event], "ops", again=True)]
    lab.recover()

    assert fates == ["replayed", "already_queued"]
    assert lab.sql.execute("SELECT cycle, attempts, status FROM hookonce.run_states").fetchall() == [
        (2, 1, "done")
    ]
    assert lab.violations() == []


def test_replay_leaves_a_running_attempt_alone(lab):
    lab.insist(stripe("evt_slow", "invoice.sent", wait=True))
    worker = lab.start_worker()
    lab.until(lab.entries, 1, "the handler")
    (event,) = lab.sql.execute("SELECT id FROM hookonce.event_states").fetchone()

    fates = [outcome.fate for outcome in events.replay(lab.sql, [event], "ops", again=True)]
    lab.let_go("evt_slow", 1)
    lab.ended(worker)

    assert fates == ["running"]
    assert lab.violations() == []


def test_event_that_only_a_ledger_beside_ours_holds_is_stored(lab, wrong_lab, fresh_database):
    with fresh_database() as url:
        scenarios.neighbours_share_a_window(lab, wrong_lab("", url))

        assert lab.violations() == []


def test_event_that_a_restored_ledger_lost_is_stored_again(wrong_lab, backup):
    lab = wrong_lab("", backup.url)

    scenarios.restored_from_a_backup(lab, backup)

    assert lab.violations() == []
