"""Mistakes that a webhook inbox can be made with, planted into the processes of a story to see it fail.

A mistake is a function in `receiving` or `working` that changes a module of the product in the process that
calls it; its name completes "a receiver (a worker) that …". `PLANTED` says in which story each must be caught,
and by which checks of `support/history.py`. `nursery.py` plants what a test asks for; the product knows nothing.

A mistake changes things by `replace` and `reword` only, which fail where the product no longer has what they
change: the story would otherwise meet a product without any mistake, or with another one.
"""

from contextlib import contextmanager
from importlib import import_module
from typing import NamedTuple

from tests.support.rewording import reworded


class Mistake(NamedTuple):
    """The story that must fail with it, and the check that must notice; of a day the failpoint at which it is cut."""

    story: str
    check: str
    at: str = "job.begun"


PLANTED = {
    "receiving.believes_the_nx_alone": Mistake("day_of_deliveries", "lost", "window.claimed"),
    "receiving.answers_before_the_commit": Mistake("day_of_deliveries", "lost", "window.claimed"),
    "receiving.settles_before_the_commit": Mistake("day_of_deliveries", "lost", "window.settled"),
    "receiving.keeps_the_body_in_a_second_transaction": Mistake(
        "day_of_deliveries", "other_bytes", "ledger.inserted"
    ),
    "receiving.puts_into_the_queue_in_a_second_transaction": Mistake(
        "day_of_deliveries", "lost", "ledger.inserted"
    ),
    "receiving.overwrites_the_body_on_conflict": Mistake("other_body_under_one_id", "other_bytes"),
    "receiving.forgets_the_other_body": Mistake("other_body_under_one_id", "conflict_lost"),
    "receiving.believes_the_window_whatever_the_body": Mistake("other_body_under_one_id", "conflict_lost"),
    "receiving.takes_a_counted_retry_for_another_body": Mistake("day_of_deliveries", "false_conflict"),
    "receiving.retries_the_set_nx_and_believes_it": Mistake("reply_of_the_window_lost", "lost"),
    "receiving.leaves_the_timeline_out": Mistake("restored_from_a_backup", "lost"),
    "receiving.leaves_the_database_out": Mistake("neighbours_share_a_window", "lost"),
    "receiving.checks_no_signature": Mistake("day_of_deliveries", "refused_though_genuine"),
    "working.never_sweeps": Mistake("reply_to_the_claim_lost", "unfinished"),
    "working.marks_done_in_a_second_transaction": Mistake("day_of_work", "doubled", "handler.returned"),
    "working.commits_what_a_failed_attempt_wrote": Mistake("day_of_work", "effect_lost"),
    "working.sends_by_the_simple_protocol": Mistake("handler_that_commits_itself", "effect_lost"),
    "working.reads_no_first_words": Mistake("handler_that_commits_itself", "doubled"),
    "working.lets_a_handler_commit": Mistake("handler_that_commits_itself_and_dies", "doubled"),
    "working.takes_a_rollback_for_a_commit": Mistake("handler_that_rolls_back", "dead_early"),
    "working.finishes_without_the_token": Mistake("stale_worker_of_a_suspect_goes_on", "stale_finish"),
    "working.finishes_what_is_not_its_own_any_more": Mistake("stale_worker_goes_on", "doubled"),
    "working.fails_without_the_token": Mistake("stale_worker_fails", "failed_twice"),
    "working.never_renews": Mistake("attempt_takes_longer_than_its_lease", "lease_taken"),
    "working.leases_by_its_own_clock": Mistake("clocks_disagree", "lease_taken"),
    "working.starts_the_last_of_a_claim_first": Mistake(
        "worker_dies_in_the_midst_of_its_claim", "wrongly_suspected"
    ),
    "working.charges_nobody_who_was_alone": Mistake("poison_kills_its_workers", "unfinished"),
    "working.charges_the_whole_batch": Mistake("day_of_work", "overcharged", "run.claimed"),
    "working.stops_on_its_budget_without_ringing": Mistake("hurried_worker", "unfinished"),
    "working.buries_at_the_first_failure": Mistake("day_of_work", "dead_early"),
    "working.runs_the_first_handler_only": Mistake("day_of_work", "unfinished"),
}


_changed = []


def plant(name, role):
    """Make the mistake in this process, if it is one of its role."""
    module, _, mistake = name.partition(".")
    if (module == "receiving") == (role == "receive"):
        getattr(import_module(f"tests.stories.mistakes.{module}"), mistake)()


def replace(owner, name, new):
    """Put something else in the place of what a module or a class itself has under this name; give what was there."""
    assert name in vars(owner), f"{owner.__name__} no longer has {name!r}"
    right = vars(owner)[name]
    _changed.append((owner, name, right))
    setattr(owner, name, new)
    return right


@contextmanager
def made(mistake):
    """Make a mistake in this process for the length of a block."""
    before = len(_changed)
    mistake()
    try:
        yield
    finally:
        while len(_changed) > before:
            setattr(*_changed.pop())


def reword(module, before, after):
    """Change what statements of a module say."""
    for name, text in reworded(module, (before, after)).items():
        replace(module, name, text)
