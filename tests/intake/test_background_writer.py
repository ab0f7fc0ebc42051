import contextlib
import threading

import pytest

from hookonce.receiver.intake import background_writer
from hookonce.receiver.intake.background_writer import (
    MAX_BODY_PREFIX,
    MAX_HEADER_LENGTH,
    MAX_SAMPLES,
    BackgroundWriter,
)
from hookonce.receiver.ledger import rejected
from hookonce.receiver.ledger.database import connections


@pytest.fixture
def query(database_url):
    with connections.connect(database_url) as connection:
        yield lambda statement: connection.execute(statement).fetchall()


def test_flood_of_forged_deliveries_is_counted_in_full_at_a_few_writes(database_url, query, monkeypatch):
    writes = []
    add = background_writer.add_rejections
    monkeypatch.setattr(background_writer, "add_rejections", lambda *args: (writes.append(args), add(*args)))

    with contextlib.closing(BackgroundWriter(database_url)) as writer:
        for _ in range(100_000):
            writer.record_rejection("stripe", "bad_signature", "forged", {"x": "y"}, b"body")

    assert query("SELECT count FROM hookonce.rejections") == [(100_000,)]
    assert len(writes) < 1000
    assert query("SELECT count(*) FROM hookonce.rejected")[0][0] <= len(writes) * MAX_SAMPLES


def test_log_of_rejected_deliveries_stays_at_its_limit(database_url, query, monkeypatch):
    monkeypatch.setattr(rejected, "MAX_KEPT", 10)

    for n in range(5):
        with contextlib.closing(BackgroundWriter(database_url)) as writer:
            for m in range(4):
                writer.record_rejection("stripe", "stale", f"{n}-{m}", {}, b"")

    assert query("SELECT count(*) FROM hookonce.rejected") == [(10,)]
    assert query("SELECT detail FROM hookonce.rejected ORDER BY id DESC LIMIT 1") == [("4-3",)]


def test_rejected_delivery_is_kept_in_part_however_large_it_is(database_url, query):
    headers = {f"x-{n}": "v" * 1000 for n in range(100)}

    with contextlib.closing(BackgroundWriter(database_url)) as writer:
        writer.record_rejection("stripe", "bad_body", "nul \0 here", headers, b"\0" * 100_000)

    ((kept, body, detail),) = query(
        "SELECT length(headers::text), length(body_prefix), detail FROM hookonce.rejected"
    )
    assert kept < MAX_HEADER_LENGTH + 1000
    assert (body, "\0" in detail) == (MAX_BODY_PREFIX, False)


def test_background_writer_survives_a_database_that_is_away(database_url, query):
    with contextlib.closing(BackgroundWriter("postgresql://127.0.0.1:1/nothing")) as writer:
        writer.record_rejection("stripe", "stale", "lost", {}, b"")
    with contextlib.closing(BackgroundWriter(database_url)) as writer:
        writer.record_rejection("stripe", "stale", "kept", {}, b"")

    assert query("SELECT detail FROM hookonce.rejected") == [("kept",)]


def test_background_writer_goes_on_after_what_can_not_be_written(database_url, query):
    def broken(_):
        turn.set()
        raise ValueError

    turn = threading.Event()
    with contextlib.closing(BackgroundWriter(database_url, on_flush=broken)) as writer:
        writer.record_rejection("mine", "bad_body", "half a character: \ud800", {}, b"")
        assert turn.wait(10)
        writer.record_rejection("mine", "bad_body", "another", {}, b"")

    assert query("SELECT detail FROM hookonce.rejected ORDER BY id") == [
        ("half a character: ?",),
        ("another",),
    ]
