"""Every store does the same: the suite of `tests/support/idempotency/checks.py`, and the table of states."""

from datetime import timedelta
from uuid import uuid4

import pytest

from hookonce.receiver.idempotency.records import (
    MAY_CLAIM,
    Claim,
    Key,
    Record,
    Result,
    State,
    Terms,
    Verdict,
    verdict,
)
from tests.support.idempotency.checks import CORE, FURTHER

SAME, OTHER = b"s" * 32, b"o" * 32
TERMS = Terms(timedelta(minutes=1), timedelta(hours=1))
ANSWER = Result(201, {"Location": "/7"}, b"seven")
OVER = {"running": timedelta(0), "lease over": timedelta(minutes=2), "expired": timedelta(hours=2)}

# What was found, how its claim ended (None: not at all), how much time has passed; what a request may do then.
TABLE = [
    ("absent", None, None, SAME, Verdict.CLAIM),
    ("in progress", None, "running", SAME, Verdict.WAIT),
    ("in progress", None, "running", OTHER, Verdict.CONFLICT),
    ("in progress", None, "lease over", SAME, Verdict.TAKE_OVER),
    ("in progress", None, "lease over", OTHER, Verdict.CONFLICT),
    ("completed", State.COMPLETED, "running", SAME, Verdict.REPLAY),
    ("completed", State.COMPLETED, "lease over", OTHER, Verdict.CONFLICT),
    ("failed for good", State.FAILED_FINAL, "lease over", SAME, Verdict.REPLAY),
    ("failed for good", State.FAILED_FINAL, "running", OTHER, Verdict.CONFLICT),
    ("failed for now", State.FAILED_RETRYABLE, "running", SAME, Verdict.RETRY),
    ("failed for now", State.FAILED_RETRYABLE, "lease over", OTHER, Verdict.CONFLICT),
    ("expired", State.COMPLETED, "expired", OTHER, Verdict.CLAIM),
]
MORE = [
    ("expired", None, "expired", OTHER, Verdict.CLAIM),
    ("expired", State.FAILED_FINAL, "expired", SAME, Verdict.CLAIM),
    ("expired", State.FAILED_RETRYABLE, "expired", SAME, Verdict.CLAIM),
]


@pytest.mark.parametrize("check", [*CORE, *FURTHER], ids=lambda check: check.__name__)
def test_store(place, check):
    check(place)


@pytest.mark.parametrize(("found", "end", "passed", "asked", "decided"), [*TABLE, *MORE])
def test_store_decides_by_the_table(place, found, end, passed, asked, decided):
    key, store = Key("scope", "one"), place.open()
    if found != "absent":
        held = store.claim(Claim(key, SAME, uuid4(), TERMS))
        if end is not None:
            store.complete(held, end, None if end == State.FAILED_RETRYABLE else ANSWER)
        place.age(key, OVER[passed])
    before = store.find(key)

    got = store.claim(Claim(key, asked, uuid4(), TERMS))

    assert verdict(before, asked) is decided
    assert isinstance(got, Claim) == (decided in MAY_CLAIM)
    if isinstance(got, Record):
        assert verdict(got, asked) is decided
        assert (got.state, got.result) == (before.state, before.result)
    else:
        is_new = decided is Verdict.CLAIM
        assert (got.attempt, got.is_uncertain) == (1 if is_new else 2, decided is Verdict.TAKE_OVER)


def test_table_has_its_twelve_rows():
    assert len({(found, passed, asked) for found, _, passed, asked, _ in TABLE}) == 12
    assert {decided for *_, decided in TABLE} == set(Verdict)


@pytest.mark.parametrize("key", ["", "a b", "é", "x" * 256, "a\n"])
def test_key_is_visible_ascii(key):
    with pytest.raises(ValueError, match="visible ASCII"):
        Key("scope", key)


@pytest.mark.parametrize(("lease", "retention"), [(0, 10), (-1, 10), (11, 10)])
def test_lease_is_no_longer_than_the_retention(lease, retention):
    with pytest.raises(ValueError, match="expected a lease"):
        Terms(timedelta(seconds=lease), timedelta(seconds=retention))
