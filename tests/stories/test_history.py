from dataclasses import replace
from hashlib import sha256

import pytest

from tests.support.stories.history import (
    CHECKS,
    LEASE_RAN_OUT,
    Conflict,
    Delivery,
    Effect,
    Entry,
    Failure,
    History,
    Ledger,
    Plan,
    Row,
    Run,
    Sent,
    check,
)

PLANS = (Plan("credit", "shop", "paid", 3), Plan("mail", "shop", "*", 3))
BODY, OTHER, COUNTED = b"body", b"other body", b"body, 2nd attempt"


def sent(raw=BODY, mark=b"1", event_id="e"):
    return Sent(event_id, "paid", raw, mark)


def delivered(status=200, verdict="accepted", *, is_authentic=True, **event):
    verdicts = {"e": verdict} if status == 200 else {}
    return Delivery("shop", [sent(**event)], status, verdicts, is_authentic)


def effect(handler="credit", attempt=1, raw=BODY):
    return Effect("shop", "e", handler, attempt, sha256(raw).hexdigest())


def entry(handler="credit", attempt=1):
    return Entry("shop", "e", handler, attempt)


def run(handler="credit", status="done", attempts=1, cycle=1):
    return Run("shop", "e", handler, status, attempts, cycle)


def failure(attempt=1, error="ValueError: no", handler="credit"):
    return Failure("shop", "e", handler, 1, attempt, error)


ROW = Row("shop", "e", "paid", "done", 1, b"1", BODY)
BOTH = ("credit", "mail")


def good(**changes):
    """An event that came once and was handled by both of its handlers, but for what is changed."""
    history = {
        "deliveries": [delivered()],
        "entries": [entry(handler) for handler in BOTH],
        "effects": [effect(handler) for handler in BOTH],
        "faults": 0,
        "suspects": [],
    }
    ledger = {"rows": [ROW], "runs": [run(handler) for handler in BOTH], "failures": [], "conflicts": []}
    return (
        History(**{name: changes.get(name, value) for name, value in history.items()}),
        Ledger(**{name: changes.get(name, value) for name, value in ledger.items()}),
    )


MAILED = {"entries": [entry("mail")], "effects": [effect("mail")]}
DEAD = ROW._replace(status="dead")
RETRIED = [delivered(503), delivered(None), delivered(verdict="duplicate", raw=COUNTED)]

GOOD = {
    "came once": {},
    "answered late, not at all, then as a duplicate": {"deliveries": RETRIED},
    "retry that the sender counted in its body": {
        "deliveries": [delivered(), delivered(verdict="duplicate", raw=COUNTED)],
    },
    "forged copy refused": {
        "deliveries": [delivered(), delivered(401, is_authentic=False, raw=OTHER, mark=b"2")]
    },
    "other body kept": {
        "deliveries": [delivered(), delivered(verdict="duplicate", raw=OTHER, mark=b"2")],
        "conflicts": [Conflict("shop", "e", b"2", OTHER)],
    },
    "failed once": {
        "entries": [entry(), entry(attempt=2), entry("mail")],
        "effects": [effect(attempt=2), effect("mail")],
        "runs": [run(attempts=2), run("mail")],
        "failures": [failure(error="ValueError: fails at attempt 1")],
    },
    "given up": {
        **MAILED,
        "entries": [entry(), entry("mail")],
        "rows": [DEAD],
        "runs": [run(status="dead"), run("mail")],
        "failures": [failure(error="GiveUp: never")],
    },
    "worker killed in its handler": {
        "faults": 1,
        "entries": [entry(), entry(), entry("mail")],
        "suspects": [("shop", "e", "credit", 1)],
    },
    "worker killed after its claim, and the next one after that of the run alone": {
        "faults": 2,
        "entries": [entry(attempt=2), entry("mail")],
        "effects": [effect(attempt=2), effect("mail")],
        "runs": [run(attempts=2), run("mail")],
        "failures": [failure(error=LEASE_RAN_OUT)],
    },
    "replayed": {
        "effects": [effect(), effect(), effect("mail")],
        "runs": [run(cycle=2), run("mail")],
    },
}

BAD = {
    "2xx and no row": ("lost", {"rows": [], "runs": [], "effects": [], "entries": []}),
    "two rows": ("lost", {"rows": [ROW, ROW]}),
    "row of which nothing came": ("lost", {"rows": [ROW._replace(status="lost")]}),
    "row without a body": ("other_bytes", {"rows": [ROW._replace(raw=None)]}),
    "row with a body nobody sent": ("other_bytes", {"rows": [ROW._replace(raw=OTHER)]}),
    "row with the later body": (
        "other_bytes",
        {
            "deliveries": [delivered(), delivered(verdict="duplicate", raw=OTHER, mark=b"2")],
            "rows": [ROW._replace(raw=OTHER)],
        },
    ),
    "row that changed with the conflict": (
        "other_bytes",
        {
            "deliveries": [delivered(), delivered(verdict="duplicate", raw=OTHER, mark=b"2")],
            "rows": [ROW._replace(raw=OTHER, fingerprint=b"2")],
        },
    ),
    "new twice": ("accepted_twice", {"deliveries": [delivered(), delivered()]}),
    "row of a refused delivery": ("intruder", {"deliveries": [delivered(401, is_authentic=False)]}),
    "refused body kept as a conflict": ("intruder", {"conflicts": [Conflict("shop", "e", b"2", OTHER)]}),
    "effect without a row": ("intruder", {"rows": [], "runs": []}),
    "genuine delivery refused": ("refused_though_genuine", {"deliveries": [delivered(), delivered(400)]}),
    "forged delivery taken": (
        "refused_though_genuine",
        {"deliveries": [delivered(), delivered(verdict="duplicate", is_authentic=False)]},
    ),
    "other body dropped": (
        "conflict_lost",
        {"deliveries": [delivered(), delivered(verdict="duplicate", raw=OTHER, mark=b"2")]},
    ),
    "retry taken for another body": ("false_conflict", {"conflicts": [Conflict("shop", "e", b"9", BODY)]}),
    "in conflict with itself": ("false_conflict", {"conflicts": [Conflict("shop", "e", b"1", BODY)]}),
    "counted more often than sent": ("miscounted_deliveries", {"rows": [ROW._replace(deliveries=2)]}),
    "event left alone": ("unfinished", {"rows": [ROW._replace(status="received")]}),
    "run left alone": ("unfinished", {"runs": [run(status="waiting"), run("mail")]}),
    "handler left out": ("unfinished", {"runs": [run("mail")]}),
    "sender never heard": ("unpromised", {"deliveries": [delivered(503), delivered(None)]}),
    "effect twice": ("doubled", {"effects": [effect(), effect(), effect("mail")]}),
    "done without effect": ("effect_lost", {"effects": [effect("mail")]}),
    "effect of a dead run": ("effect_lost", {"runs": [run(status="dead"), run("mail")]}),
    "effect of a lost lease": ("stale_finish", {"runs": [run(attempts=2), run("mail")]}),
    "handled with other bytes": ("wrong_bytes", {"effects": [effect(raw=OTHER), effect("mail")]}),
    "attempted too often": ("overrun", {"runs": [run(attempts=4), run("mail")]}),
    "entered too often": ("overrun", {"entries": [entry()] * 4}),
    "dead without a reason": ("dead_early", {"runs": [run(status="dead"), run("mail")]}),
    "dead too early": ("dead_early", {"runs": [run(status="dead"), run("mail")], "failures": [failure()]}),
    "charged without an attempt": ("overcharged", {"runs": [run(attempts=2), run("mail")]}),
    "whole batch charged for one fault": (
        "overcharged",
        {"faults": 1, "runs": [run(attempts=2), run("mail", attempts=2)]},
    ),
    "charged for the first fault": ("overcharged", {"faults": 1, "runs": [run(attempts=2), run("mail")]}),
    "lease lost without a fault": ("lease_taken", {"failures": [failure(error=LEASE_RAN_OUT)]}),
    "entered twice without a fault": ("lease_taken", {"entries": [entry(), entry(), entry("mail")]}),
    "two outcomes of a handler": ("ended_twice", {"runs": [run(), run(cycle=2), run("mail")]}),
    "to be run alone though it was not under way": (
        "wrongly_suspected",
        {"faults": 1, "suspects": [("shop", "e", "credit", 0)]},
    ),
    "attempt failed twice": ("failed_twice", {"failures": [failure(), failure()]}),
    "failure of another attempt": (
        "failed_twice",
        {"failures": [failure(2, "ValueError: fails at attempt 1")]},
    ),
}


@pytest.mark.parametrize("changes", GOOD.values(), ids=GOOD)
def test_checker_finds_nothing_in_a_good_history(changes):
    history, ledger = good(**changes)

    assert check(history, ledger, PLANS) == []


@pytest.mark.parametrize(("name", "changes"), BAD.values(), ids=BAD)
def test_checker_names_the_broken_promise_of_a_bad_history(name, changes):
    history, ledger = good(**changes)

    assert name in {violation.check for violation in check(history, ledger, PLANS)}


def test_every_check_has_a_history_that_breaks_it():
    assert {judge.__name__.removeprefix("_") for judge in CHECKS} == {name for name, _ in BAD.values()}


def test_unfinished_work_is_no_violation_before_rest():
    history, ledger = good(rows=[ROW._replace(status="received")], runs=[], effects=[], entries=[])

    assert check(history, ledger, PLANS, at_rest=False) == []


def test_row_without_its_body_is_right_after_retention():
    history, ledger = good(rows=[ROW._replace(raw=None)])

    assert check(history, replace(ledger, dropped_bodies=True), PLANS) == []
