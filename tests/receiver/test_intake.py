from datetime import UTC, datetime

import pytest

from providers.kit.registry import load
from receiver.intake import ledger_id, period_of


@pytest.mark.parametrize(
    ("name", "second", "added"),
    [
        ("stripe", 0, ""),
        ("dropbox", 0, "@2026-01-31T14:07:00Z"),
        ("dropbox", 59, "@2026-01-31T14:07:00Z"),
        ("dropbox", 60, "@2026-01-31T14:08:00Z"),
    ],
)
def test_intake_adds_the_time_of_receipt_only_where_bodies_repeat(name, second, added):
    now = datetime(2026, 1, 31, 14, 7 + second // 60, second % 60, 5, tzinfo=UTC)

    assert period_of(load(name), now) == added


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
