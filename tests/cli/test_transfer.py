import contextlib
import json

import psycopg
import pytest

from hookonce.receiver.ledger.replay import transfer

pytestmark = pytest.mark.usefixtures("inbox")
ALL = """
SELECT source, event_id, type, account, fingerprint, id_is_signed, occurred_at, url, headers::text, body
FROM hookonce.event_states e JOIN hookonce.bodies b ON b.event = e.id WHERE source = 'stripe' ORDER BY e.id
"""


@pytest.fixture
def elsewhere(monkeypatch, fresh_database):
    """Commands after this one are about another, empty ledger; gives a connection to it."""
    with fresh_database() as url, psycopg.connect(url, autocommit=True) as connection:
        yield lambda: monkeypatch.setenv("DATABASE_URL", url) or connection


def test_events_of_an_export_are_the_same_in_another_ledger(
    hookonce, stored, ledger, elsewhere, inbox, monkeypatch
):
    monkeypatch.setattr(transfer, "TRANSFER_PAGE_SIZE", 2)
    for n, body in enumerate((b'{"\xc3\xa4": 1}', b"\xff\x00\r\n", b"")):
        stored(f"evt_{n}", body=body, status="done", runs=[("a", "done", 1)])
    ledger.execute("UPDATE hookonce.events SET occurred_at = now(), account = 'acct_1' WHERE id = 2")
    stored("evt_x", source="github")
    (inbox / "out").write_bytes(hookonce("events", "export", "--source", "stripe").out)

    other = elsewhere()
    imported = hookonce("events", "import", "out")
    again = hookonce("events", "import", "--run", "out")

    assert (imported.code, imported.err) == (
        0,
        "3 new and held, 0 known, 0 known with another body, 0 refused\n",
    )
    assert again.err.startswith("0 new, 3 known")
    assert other.execute(ALL).fetchall() == ledger.execute(ALL).fetchall()
    assert other.execute("SELECT DISTINCT status, due_at FROM hookonce.event_states").fetchall() == [
        ("held", None)
    ]
    assert other.execute("SELECT action, detail FROM hookonce.audit").fetchall() == [
        ("import", {"events": 3, "run": False})
    ]


@pytest.mark.parametrize("how", ["--run", "--no-run"])
def test_element_that_nobody_can_read_is_dead_wherever_it_is_imported(
    hookonce, stored, elsewhere, inbox, how
):
    stored("evt_1", type="unreadable", unreadable="bad_body: $.id is missing")
    (inbox / "out").write_bytes(hookonce("events", "export").out)

    other = elsewhere()
    hookonce("events", "import", how, "out")

    assert other.execute("SELECT status, due_at FROM hookonce.event_states").fetchall() == [("dead", None)]
    assert hookonce("replay", "--status", "held", "--yes").code == 0
    assert other.execute("SELECT status, due_at FROM hookonce.event_states").fetchall() == [("dead", None)]


def test_events_are_exported_oldest_first(hookonce, stored):
    stored("evt_1", status="done", runs=[("a", "done", 1)])
    stored("evt_2", body=b"\xff")

    exported = hookonce("events", "export").documents

    assert [event["event_id"] for event in exported] == ["evt_1", "evt_2"]
    assert (exported[0]["body"], exported[1]["body_b64"], exported[0]["headers"]) == (
        "{}",
        "/w==",
        {"x-a": "b"},
    )


def test_events_of_an_import_run_at_once_when_asked_to(hookonce, stored, elsewhere, inbox, rings):
    stored("evt_1", status="done")
    (inbox / "out").write_bytes(hookonce("events", "export").out)

    other = elsewhere()
    hookonce("events", "import", "--run", "out")

    assert other.execute("SELECT status, due_at <= now() FROM hookonce.event_states").fetchall() == [
        ("received", True)
    ]
    assert rings() == 1


def test_import_refuses_lines_that_are_no_events_and_takes_the_others(hookonce, stored, elsewhere, inbox):
    stored("evt_1")
    good = hookonce("events", "export").documents[0]
    bad = [
        {**good, "body": None, "url": None, "headers": None},  # as an export writes it
        {**good, "source": "No Source"},
        {**good, "event_id": "a\0b"},
        {**good, "fingerprint": "00"},
        {**good, "body": None, "body_b64": "!"},
        {**good, "headers": {"a": 1}},
        {**good, "occurred_at": "9999-12-31T23:59:59-01:00"},
        [],
    ]
    lines = [json.dumps(line) for line in (good, *bad)]
    (inbox / "in").write_text("\n".join([*lines, "no json", ""]))

    elsewhere()
    imported = hookonce("events", "import", "in")

    assert imported.code == 3
    assert "1 new and held, 0 known, 0 known with another body, 9 refused" in imported.err
    assert "line 2: the line has no body" in imported.err
    assert [line.partition(":")[0] for line in imported.err.splitlines()[:-1]] == [
        f"in line {n}" for n in range(2, 11)
    ]


@pytest.mark.parametrize("name", ["provider", "event_id", "type", "account", "unreadable", "url"])
def test_import_refuses_a_line_with_a_text_that_postgresql_can_not_keep(hookonce, stored, inbox, name):
    stored("evt_1")
    good = hookonce("events", "export").documents[0]
    lines = [{**good, name: "a\0b"}, {**good, "event_id": "evt_2"}]
    (inbox / "in").write_text("\n".join(map(json.dumps, lines)))

    imported = hookonce("events", "import", "in")

    assert (imported.code, imported.err.splitlines()[0]) == (
        3,
        "in line 1: a text holds a NUL; expected a line that `hookonce events export` wrote",
    )
    assert "1 new and held" in imported.err


def test_import_keeps_another_body_beside_the_known_one(hookonce, stored, ledger, inbox):
    stored("evt_1")
    document = hookonce("events", "export").documents[0]
    other = {**document, "body": "other", "fingerprint": "ab" * 32}
    (inbox / "in").write_text(json.dumps(document) + "\n" + json.dumps(other))

    imported = hookonce("events", "import", "in")

    assert imported.err.startswith("0 new and held, 1 known, 1 known with another body")
    assert ledger.execute("SELECT body FROM hookonce.conflicts").fetchall() == [(b"other",)]


@pytest.mark.parametrize("step", ["UPDATE ON hookonce.queue", "INSERT ON hookonce.audit"])
def test_nothing_of_an_import_to_be_held_is_due_when_it_is_cut_in_between(
    hookonce, stored, elsewhere, inbox, step
):
    stored("evt_1", status="done")
    (inbox / "out").write_bytes(hookonce("events", "export").out)
    other = elsewhere()
    other.execute("CREATE FUNCTION cut() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE ''cut''; END'")
    other.execute(f"CREATE TRIGGER cut BEFORE {step} FOR EACH ROW EXECUTE FUNCTION cut()")

    with contextlib.suppress(psycopg.errors.RaiseException):
        hookonce("events", "import", "--no-run", "out")

    assert other.execute("SELECT status FROM hookonce.event_states WHERE status <> 'held'").fetchall() == []
    counted = "SELECT (SELECT count(*) FROM hookonce.event_states) = (SELECT count(*) FROM hookonce.audit)"
    assert other.execute(counted).fetchone() == (True,)
