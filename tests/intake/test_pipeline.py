from datetime import UTC, datetime, timedelta, timezone

import pytest

from hookonce.providers import Event
from hookonce.providers.kit.registry import load
from hookonce.receiver.intake.new_events import ledger_id, plausible_time, receipt_of, retry_ids

MARK = bytes.fromhex("0123456789abcdef" * 4)


@pytest.mark.parametrize(
    ("name", "second", "added"),
    [
        ("stripe", 0, ""),
        ("dropbox", 0, "+0123456789abcdef@2026-01-31T14:07:00Z"),
        ("dropbox", 59, "+0123456789abcdef@2026-01-31T14:07:50Z"),
        ("dropbox", 60, "+0123456789abcdef@2026-01-31T14:08:00Z"),
    ],
)
def test_intake_adds_the_time_of_receipt_only_where_bodies_repeat(name, second, added):
    now = datetime(2026, 1, 31, 14, 7 + second // 60, second % 60, 5, tzinfo=UTC)

    assert receipt_of(load(name), Event("a", "b", {}), MARK, now) == added


def test_intake_looks_for_a_receipt_shortly_before_and_after_only_where_bodies_repeat():
    now = datetime(2026, 1, 31, 14, 8, 5, tzinfo=UTC)

    known = retry_ids(load("dropbox"), Event("a", "b", {}), MARK, now)

    assert retry_ids(load("stripe"), Event("a", "b", {}), MARK, now) == ()
    assert [each.event_id.removeprefix("a+0123456789abcdef@2026-01-31T") for each in known] == [
        *("14:07:10Z", "14:07:20Z", "14:07:30Z", "14:07:40Z", "14:07:50Z"),
        *("14:08:10Z", "14:08:20Z", "14:08:30Z", "14:08:40Z", "14:08:50Z"),
    ]


@pytest.mark.parametrize(
    ("event_id", "is_kept"),
    [
        ("evt_1", True),
        ("é" * 127, True),
        ("é" * 128, False),
        ("x" * 10_000, False),
        ("nul\0", False),
        ("half \ud800", False),
        ("sha256:" + "0" * 64, False),  # or a sender could take the place of an id that was hashed
    ],
)
def test_intake_keeps_an_id_that_fits_and_hashes_others(event_id, is_kept):
    assert (ledger_id(event_id) == event_id) is is_kept
    assert ledger_id(event_id) != ledger_id(event_id + "x")


FAR_EAST, FAR_WEST = timezone(timedelta(hours=14)), timezone(-timedelta(hours=12))


@pytest.mark.parametrize(
    "moment",
    [
        None,
        datetime(2026, 1, 31),  # noqa: DTZ001  that is what is odd about it
        datetime.min.replace(tzinfo=UTC),
        datetime.min.replace(tzinfo=FAR_EAST),
        datetime.max.replace(tzinfo=UTC),
        datetime.max.replace(tzinfo=FAR_WEST),
        datetime(1899, 12, 31, tzinfo=UTC),
        datetime(2200, 1, 1, tzinfo=UTC),
    ],
)
def test_intake_drops_a_time_that_can_not_be_meant(moment):
    assert plausible_time(moment) is None


@pytest.mark.parametrize("year", [1900, 1970, 2026, 2199])
def test_intake_keeps_a_time_that_may_be_meant(year):
    moment = datetime(year, 6, 1, tzinfo=FAR_EAST)

    assert plausible_time(moment) is moment
