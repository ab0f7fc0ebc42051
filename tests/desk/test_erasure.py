"""Events of a person are erased, and their ids stay."""

import gzip
import json
import subprocess
import sys
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from hookonce.providers import Delivery
from hookonce.receiver import encryption
from hookonce.receiver.cli.commands import planned as commands
from hookonce.receiver.config.settings import load_settings
from hookonce.receiver.desk import maintenance
from hookonce.receiver.desk.maintenance import ErasureRequest
from hookonce.receiver.ledger.decryption import pack
from hookonce.receiver.ledger.rejected import Sample, add_rejections
from hookonce.receiver.ledger.store import store
from tests.support.new_event import new_event
from tests.support.outcomes import fail, put_into_state
from tests.support.waiting import until

LEFT = """
SELECT (SELECT count(*) FROM hookonce.bodies WHERE event = e.id),
       (SELECT count(*) FROM hookonce.failures WHERE event = e.id),
       (SELECT count(result) FROM hookonce.runs WHERE event = e.id)
FROM hookonce.events e WHERE id = %s
"""


@pytest.fixture
def ended(inbox, request):
    """An event that has died, with an error and a result of another handler."""
    key = f"evt_of_{request.node.name}"
    (row,) = store(inbox.connection, [new_event(key, type="erased")]).values()
    put_into_state(inbox.connection, row.id, "dead", [("shop.credit", "dead", 1), ("shop.mail", "done", 1)])
    fail(inbox.connection, row.id, "KeyError: ada")
    inbox.connection.execute(
        "UPDATE hookonce.runs SET result = '1' WHERE event = %s AND handler = 'shop.mail'", [row.id]
    )
    return row.id


def left(inbox, event):
    return inbox.connection.execute(LEFT, [event]).fetchone()


@pytest.mark.parametrize("place", [[], ["--at", "there"]], ids=["here", "there"])
def test_event_that_has_ended_is_erased_and_the_others_are_named(everywhere, inbox, ended, place):
    ((_, row),) = store(inbox.connection, [new_event(f"evt_open_{ended}", type="erased")]).items()
    asked = [*place, "events", "erase", ended, row.id, "nope"]

    shown = everywhere.run(*asked, "--dry-run")
    kept = left(inbox, ended)
    done = everywhere.run(*asked, "--yes", "--json")

    assert (shown.code, f"to erase: 1 event ({ended})" in shown.err, kept) == (3, True, (1, 1, 1))
    said = {name: done.documents[0][name] for name in ("erased", "open", "unknown_names")}
    assert (done.code, said) == (3, {"erased": [ended], "open": [row.id], "unknown_names": ["nope"]})
    assert (left(inbox, ended), left(inbox, row.id)[0]) == ((0, 0, 0), 1)
    [line] = everywhere.run("audit", "--subject", f"event {ended}", "--json").documents
    assert line["action"] == "erase"


def test_agent_erases_only_what_the_plan_has_shown(everywhere, inbox, ended):
    plan = everywhere.ask("tool", "erase_events", {"events": [str(ended)]}, [])

    assert (plan["dry_run"], plan["erased"], left(inbox, ended)) == (True, [ended], (1, 1, 1))


def test_nothing_is_erased_unasked(everywhere, inbox, ended):
    refused = everywhere.run("events", "erase", ended)

    assert (refused.code, "add --yes to erase them" in refused.err, left(inbox, ended)) == (
        2,
        True,
        (1, 1, 1),
    )


PERSON = "ada+erase@example.com"
TABLES = """
SELECT relname FROM pg_class c
WHERE relnamespace = 'hookonce'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
"""


def held(connection):
    """The tables in which a text of the person stands, in the clear."""
    forms = [PERSON, "ada%2Berase%40example.com", PERSON.encode().hex(), b"ada%2Berase%40example.com".hex()]
    names = [name for (name,) in connection.execute(TABLES)]
    query = "SELECT EXISTS (SELECT FROM hookonce.{} t, unnest(%s::text[]) f WHERE position(f IN t::text) > 0)"
    return {name for name in names if connection.execute(query.format(name), [forms]).fetchone()[0]}


SECRET = json.dumps({"email": PERSON}).encode()
LINES = json.dumps([0, [1, "info", "stdout", PERSON]]).encode()
PLACES = (
    ("UPDATE hookonce.bodies SET body = %(text)s, key_id = %(key)s WHERE event = %(event)s", SECRET, "body"),
    (
        (
            'UPDATE hookonce.bodies SET body = %(text)s, key_id = %(key)s, headers = \'{"content-encoding": "gzip"}\''
            " WHERE event = %(event)s"
        ),
        gzip.compress(b"email=ada%2Berase%40example.com"),
        "body",
    ),
    (
        "UPDATE hookonce.bodies SET headers = json_build_object('x', %(clear)s::text) WHERE event = %(event)s",
        b"",
        "body",
    ),
    (
        "UPDATE hookonce.bodies SET url = '/hooks?email=ada%%2Berase%%40example.com' WHERE event = %(event)s",
        b"",
        "body",
    ),
    (
        (
            "INSERT INTO hookonce.conflicts (event, fingerprint, headers, body, key_id)"
            " VALUES (%(event)s, %(mark)s, '{}', %(text)s, %(key)s)"
        ),
        SECRET,
        "body",
    ),
    (
        (
            "INSERT INTO hookonce.failures (event, handler, cycle, attempt, error)"
            " VALUES (%(event)s, 'shop.a', 1, 1, %(clear)s)"
        ),
        b"",
        "traceback",
    ),
    (
        (
            "INSERT INTO hookonce.failures (event, handler, cycle, attempt, error, traceback, key_id)"
            " VALUES (%(event)s, 'shop.a', 1, 1, '', %(text)s, %(key)s)"
        ),
        SECRET,
        "traceback",
    ),
    (
        (
            "INSERT INTO hookonce.run_logs (event, handler, cycle, attempt, received_at, lines, key_id)"
            " VALUES (%(event)s, 'shop.a', 1, 1, now(), %(text)s, %(key)s)"
        ),
        LINES,
        "log",
    ),
    (
        "UPDATE hookonce.runs SET sealed_result = %(text)s, key_id = %(key)s WHERE event = %(event)s",
        SECRET,
        "result",
    ),
    ("UPDATE hookonce.runs SET result = to_json(%(clear)s::text) WHERE event = %(event)s", b"", "result"),
    (
        (
            "INSERT INTO hookonce.steps (event, handler, name, state, owner, result, key_id)"
            " VALUES (%(event)s, 'shop.a', 'mail', 'completed', gen_random_uuid(), %(text)s, %(key)s)"
        ),
        SECRET,
        "step",
    ),
)
"""Statements that put the person somewhere, what is put there, and what binds it where it is sealed."""


def plant(connection, keyring, prefix, count):
    """Events that have ended, of which each holds the person somewhere, by turns everywhere; return their ids."""
    made = [new_event(f"{prefix}_{n}", type="planted") for n in range(count)]
    stored = store(connection, made)
    for n, each in enumerate(made):
        event, status = stored["stripe", each.event_id].id, "dead" if n % 2 else "done"
        put_into_state(connection, event, status, [("shop.a", status, 1)])
        statement, text, kind = PLACES[n % len(PLACES)]
        bonds = {
            "body": encryption.body_context("stripe", each.event_id, each.fingerprint),
            "traceback": encryption.traceback_context(event, "shop.a", 1, 1),
            "log": encryption.log_context(event, "shop.a", 1, 1),
            "result": encryption.result_context(event, "shop.a"),
            "step": encryption.step_context(event, "shop.a", "mail"),
        }
        text, key = keyring.encrypt(text, bonds[kind])
        values = {"event": event, "text": text, "key": key, "clear": PERSON, "mark": each.fingerprint}
        connection.execute(statement, values)
    return [stored["stripe", each.event_id].id for each in made]


def refuse(connection, keyring):
    """A rejected delivery, and one in quarantine, of the person; and one of somebody else."""
    for body in (SECRET, b"{}"):
        at = datetime.now(UTC)
        rejection = Sample(at, "stripe", "stale", "", "{}", body)
        add_rejections(connection, [rejection], {("stripe", "stale"): 1}, keyring)
        packed = pack(Delivery("POST", "/hooks/stripe", {}, body, ""))
        text, key = keyring.encrypt(packed, encryption.quarantine_context("stripe", "stale", at))
        connection.execute(
            "INSERT INTO hookonce.quarantine (source, reason, arrived_at, key_id, delivery)"
            " VALUES ('stripe', 'stale', %s, %s, %s)",
            [at, key, text],
        )


def of_person(run):
    """What the dry run of the page finds."""
    return run("events", "erase", "--body", PERSON, "--dry-run", "--json").documents[0]


def statuses(connection, ids):
    query = "SELECT status, count(*) FROM hookonce.event_states WHERE id = ANY(%s) GROUP BY 1"
    return dict(connection.execute(query, [ids]).fetchall())


@pytest.fixture
def planted(inbox):
    """304 events of a person, in the clear and sealed, two refused deliveries, and others of somebody else."""
    ids = plant(inbox.connection, encryption.OFF, "open", 152)
    ids += plant(inbox.connection, load_settings().keyring, "sealed", 152)
    other = store(inbox.connection, [new_event("evt_of_somebody", type="planted")])[
        "stripe", "evt_of_somebody"
    ].id
    put_into_state(inbox.connection, other, "dead", [("shop.a", "dead", 1)])
    refuse(inbox.connection, load_settings().keyring)
    return SimpleNamespace(ids=sorted(ids), other=other)


def test_person_is_erased_wherever_it_stands_though_killed_halfway(everywhere, inbox, planted):
    connection, erase = inbox.connection, ["events", "erase", "--body", PERSON, "--yes"]
    planned = of_person(everywhere.run)

    with connection.transaction():  # the second step waits for the oldest of all
        connection.execute("SELECT FROM hookonce.events WHERE id = %s FOR UPDATE", [planted.ids[0]])
        killed = subprocess.Popen([sys.executable, "-m", "hookonce.receiver.cli", *erase])
        begun = until(lambda: erased(connection, planted), process=killed)
        killed.kill()
        killed.wait()
    left = of_person(everywhere.run)
    done = everywhere.run(*erase)

    assert (sorted(planned["erased"]), planned["refused"]) == (planted.ids, 2)
    assert (begun, len(left["erased"])) == (200, 104)
    assert (done.code, "a second look finds 0 events\n" in done.err) == (0, True)
    assert erased(connection, planted) == 304
    assert receipts(connection) == [{"by": ["until", "content"], "erased": 0, "refused": 2}]
    assert (held(connection), of_person(everywhere.run)["erased"]) == (set(), [])
    assert statuses(connection, planted.ids) == {"done": 152, "discarded": 152}
    assert statuses(connection, [planted.other]) == {"dead": 1}
    counts = "SELECT (SELECT count(*) FROM hookonce.rejected), (SELECT count(*) FROM hookonce.quarantine)"
    assert connection.execute(counts).fetchone() == (1, 1)
    assert "was erased" in everywhere.run("events", "show", planted.ids[1], "--body").out
    assert "can't be replayed: it was erased" in everywhere.run("replay", planted.ids[1]).err


def erased(connection, planted):
    query = "SELECT count(*) FROM hookonce.audit WHERE action = 'erase' AND subject = ANY(%s)"
    return connection.execute(query, [[f"event {each}" for each in planted.ids]]).fetchone()[0]


def receipts(connection):
    query = "SELECT detail FROM hookonce.audit WHERE action = 'erase' AND subject = 'by a filter' ORDER BY id"
    return [detail for (detail,) in connection.execute(query)]


@pytest.mark.parametrize(
    "options",
    [
        ["--account", "acct_ada"],
        ["--type", "chosen.*"],
        ["--where", "$.email=ada"],
        ["--source", "stripe", "--body", 'ada"}'],
    ],
    ids=["account", "type", "where", "source"],
)
def test_second_look_finds_nothing_by_any_filter(everywhere, inbox, request, options):
    events = [
        new_event(
            f"evt_{n}_{request.node.callspec.id}", b'{"email": "ada"}', type="chosen.one", account="acct_ada"
        )
        for n in range(3)
    ]
    ids = [row.id for row in store(inbox.connection, events).values()]
    for event in ids[:2]:
        put_into_state(inbox.connection, event, "done", [("shop.a", "done", 1)])

    done = everywhere.run("events", "erase", *options, "--yes", "--json")
    again = everywhere.run("events", "erase", *options, "--yes", "--json")

    assert (done.code, sorted(done.documents[0]["erased"]), done.documents[0]["open"]) == (
        3,
        ids[:2],
        ids[2:],
    )
    assert (again.documents[0]["erased"], again.documents[0]["open"]) == ([], ids[2:])
    put_into_state(inbox.connection, ids[2], "done", [("shop.a", "done", 1)])
    assert everywhere.run("events", "erase", *options, "--yes").code == 0


def come(connection, prefix):
    """Take in an event of a text that has ended, and a rejected delivery; return the event's id."""
    text = b'{"name": "bounded"}'
    (row,) = store(connection, [new_event(f"{prefix}_{datetime.now(UTC)}", text)]).values()
    put_into_state(connection, row.id, "done", [("shop.a", "done", 1)])
    rejection = Sample(datetime.now(UTC), "stripe", "stale", "", "{}", text)
    add_rejections(connection, [rejection], {("stripe", "stale"): 1}, load_settings().keyring)
    return row.id


@pytest.mark.parametrize("place", [[], ["--at", "there"]], ids=["here", "there"])
def test_erasure_leaves_what_came_after_its_question(everywhere, inbox, monkeypatch, place):
    counted, later = come(inbox.connection, "counted"), []
    monkeypatch.setattr(commands, "confirm", lambda *_: later.append(come(inbox.connection, "later")))

    done = everywhere.run(*place, "events", "erase", "--body", "bounded", "--json")
    again = everywhere.run(*place, "events", "erase", "--body", "bounded", "--yes", "--json")

    found = [(each.code, each.documents[0]["erased"], each.documents[0]["refused"]) for each in (done, again)]
    assert found == [(3, [counted], 1), (0, later, 1)]
    assert f"a second look finds 1 event ({later[0]}) and 1 rejected delivery" in done.err


def test_plan_of_an_erasure_is_done_to_the_rejected_deliveries_that_it_shows(inbox):
    counted = come(inbox.connection, "planned")
    left_alone = store(inbox.connection, [new_event("evt_unplanned", b"bounded")])[
        "stripe", "evt_unplanned"
    ].id
    plan = maintenance.erase_events.plan(inbox.desk, asked=ErasureRequest(text="bounded"))
    come(inbox.connection, "unplanned")
    put_into_state(inbox.connection, left_alone, "done", [("shop.a", "done", 1)])

    done = inbox.desk.ask(maintenance.erase_events, **plan.models)

    assert (plan.shown.erased, plan.shown.open, plan.shown.refused) == ([counted], [left_alone], 1)
    assert (done.erased, done.open, done.refused) == ([counted], [], 1)


def test_plan_of_nothing_changes_nothing(inbox):
    plan = maintenance.erase_events.plan(inbox.desk, asked=ErasureRequest(text="not yet there"))
    (row,) = store(inbox.connection, [new_event("evt_not_yet", b"not yet there")]).values()
    put_into_state(inbox.connection, row.id, "done", [("shop.a", "done", 1)])

    done = inbox.desk.ask(maintenance.erase_events, **plan.models)

    assert (done.dry_run, left(inbox, row.id)[0]) == (True, 1)


@pytest.mark.parametrize("options", [[], ["12", "--body", "x"], ["--body", "x", "--where", "$.a"]])
def test_erasure_is_refused_without_a_clear_choice(everywhere, options):
    refused = everywhere.run("events", "erase", *options, "--yes")

    assert (refused.code, "not both and not neither" in refused.err) == (2, True)
