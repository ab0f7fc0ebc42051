import contextlib
import threading

import pytest

from receiver import database
from receiver.ledger import notes
from receiver.tally import BODY_PREFIX, HEADERS, SAMPLES, Tally


@pytest.fixture
def query(database_url):
    with database.connect(database_url) as connection:
        yield lambda statement: connection.execute(statement).fetchall()


def test_flood_of_forged_deliveries_is_counted_in_full_at_a_few_writes(database_url, query, monkeypatch):
    writes = []
    add = notes.add_rejections
    monkeypatch.setattr(notes, "add_rejections", lambda *args: (writes.append(args), add(*args)))

    with contextlib.closing(Tally(database_url)) as tally:
        for _ in range(100_000):
            tally.rejected("stripe", "bad_signature", "forged", {"x": "y"}, b"body")

    assert query("SELECT count FROM rejections") == [(100_000,)]
    assert len(writes) < 1000
    assert query("SELECT count(*) FROM rejected")[0][0] <= len(writes) * SAMPLES


def test_log_of_rejected_deliveries_stays_at_its_limit(database_url, query, monkeypatch):
    monkeypatch.setattr(notes, "KEPT", 10)

    for n in range(5):
        with contextlib.closing(Tally(database_url)) as tally:
            for m in range(4):
                tally.rejected("stripe", "stale", f"{n}-{m}", {}, b"")

    assert query("SELECT count(*) FROM rejected") == [(10,)]
    assert query("SELECT detail FROM rejected ORDER BY id DESC LIMIT 1") == [("4-3",)]


def test_rejected_delivery_is_kept_in_part_however_large_it_is(database_url, query):
    headers = {f"x-{n}": "v" * 1000 for n in range(100)}

    with contextlib.closing(Tally(database_url)) as tally:
        tally.rejected("stripe", "bad_body", "nul \0 here", headers, b"\0" * 100_000)

    ((kept, body, detail),) = query("SELECT length(headers::text), length(body_prefix), detail FROM rejected")
    assert kept < HEADERS + 1000
    assert (body, "\0" in detail) == (BODY_PREFIX, False)


def test_tally_survives_a_database_that_is_away(database_url, query):
    with contextlib.closing(Tally("postgresql://127.0.0.1:1/nothing")) as tally:
        tally.rejected("stripe", "stale", "lost", {}, b"")
    with contextlib.closing(Tally(database_url)) as tally:
        tally.rejected("stripe", "stale", "kept", {}, b"")

    assert query("SELECT detail FROM rejected") == [("kept",)]


def test_tally_goes_on_after_what_can_not_be_written(database_url, query):
    def broken(_):
        turn.set()
        raise ValueError

    turn = threading.Event()
    with contextlib.closing(Tally(database_url, also=broken)) as tally:
        tally.rejected("mine", "bad_body", "half a character: \ud800", {}, b"")
        assert turn.wait(10)
        tally.rejected("mine", "bad_body", "another", {}, b"")

    assert query("SELECT detail FROM rejected ORDER BY id") == [("half a character: ?",), ("another",)]
