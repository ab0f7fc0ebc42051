import json
import sys
from types import SimpleNamespace

import pytest

from hookonce.receiver.cli import main
from hookonce.receiver.ledger import store
from hookonce.receiver.remote import profiles
from hookonce.receiver.remote.profiles import Profile
from tests.cli.conftest import arriving
from tests.support.outcomes import put_into_state


@pytest.fixture
def far(served, home, monkeypatch, capfd):
    """Run a command at another inbox, of which this machine knows no more than a token."""
    monkeypatch.chdir(home)
    for name in ("DATABASE_URL", "REDIS_URL", "HOOKONCE_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    token = served.token("far", "read", "replay", "admin")
    profiles.save(Profile("there", served.url, token))

    def run(*arguments):
        capfd.readouterr()
        monkeypatch.setattr(sys, "argv", ["hookonce", "--at", "there", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capfd.readouterr()
        assert token not in out + err
        lines = out.splitlines()
        documents = [json.loads(line) for line in lines if line.startswith('{"')]
        return SimpleNamespace(code=int(ended.value.code or 0), lines=lines, err=err, documents=documents)

    return run


@pytest.fixture
def event(served):
    connection = served.inbox.connection
    row = store.store(connection, [arriving("stripe", "evt_1", "invoice.paid", b'{"n": "needle"}')])
    number = row["stripe", "evt_1"].id
    put_into_state(connection, number, "dead", [("credit", "dead", 2)])
    return number


LISTINGS = [
    ("events", "list"),
    ("events", "list", "--status", "dead"),
    ("rejected", "list"),
    ("events", "conflicts"),
    ("alerts", "list"),
    ("handlers", "list"),
    ("sources", "list"),
    ("providers", "list"),
    ("sources", "secrets", "list"),
    ("steps", "list"),
    ("rejected", "quarantine"),
    ("limits",),
    ("replays",),
    ("commands",),
    ("stats",),
    ("audit",),
    ("workers",),
    ("sources", "show", "stripe"),
]


@pytest.mark.parametrize("name", [".", ".."])
def test_name_that_is_a_step_in_a_path_is_not_asked(far, name):
    refused = far("events", "show", name)

    assert refused.code == 2
    assert "give the ledger id" in refused.err


@pytest.mark.usefixtures("event")
def test_every_listing_goes_by_the_api(far):
    codes = {" ".join(each): far(*each).code for each in LISTINGS}

    assert set(codes.values()) == {0}, codes


def test_event_of_another_inbox_is_shown_opened_searched_and_replayed(far, served, event):
    assert [each["id"] for each in far("events", "list", "--json").documents] == [event]
    assert far("events", "show", "evt_1", "--json").documents[0]["body"] == '{"n": "needle"}'
    assert [each["id"] for each in far("events", "list", "--where", "$.n=needle", "--json").documents] == [
        event
    ]
    assert far("events", "open", "evt_1").lines == [f"{served.url}/admin/events/{event}"]
    assert "searched 1 body" in far("events", "list", "--body", "no such").err

    replayed = far("replay", "stripe:evt_1")

    assert (replayed.code, replayed.err) == (
        0,
        f"to replay: 1 event ({event})\nevent {event} replayed: credit\n",
    )


def test_test_event_is_sent_by_the_inbox_itself(far):
    refused = far("trigger", "stripe")

    assert (refused.code, "tests = true in [sources.stripe]" in refused.err) == (1, True)
    assert "the other inbox makes and signs" in far("trigger", "stripe", "--times", "3").err


@pytest.mark.usefixtures("event")
def test_tail_prints_what_is_new_of_another_inbox(far, served, monkeypatch):
    looks = iter([lambda: served.inbox.deliver("evt_2"), KeyboardInterrupt])

    def between(_):
        do = next(looks)
        if do is KeyboardInterrupt:
            raise do
        do()

    monkeypatch.setattr("hookonce.receiver.cli.commands.tail.sleep", between)
    told = far("tail", "--json")

    assert [(each["event_id"], each["status"]) for each in told.documents] == [
        ("evt_1", "dead"),
        ("evt_2", "received"),
    ]
    assert (told.code, told.err) == (0, "")


@pytest.mark.usefixtures("event")
def test_what_is_not_there_is_said_in_the_same_words(far):
    shown = far("events", "show", "evt_2")

    assert shown.code == 4
    assert shown.err == (
        "hookonce: no event is 'evt_2'; expected a ledger id, source:event_id, or how a sender's id begins, "
        "see `hookonce events list`\n"
    )
    assert far("pause", "strip").code == 4


@pytest.mark.usefixtures("event")
def test_bulk_replay_at_another_inbox_begins_with_what_was_shown(far):
    begun = far("replay", "--status", "dead", "--yes", "--no-wait")

    assert begun.code == 0
    assert "1 event matches" in begun.err


@pytest.mark.parametrize("command", [("keys", "list"), ("serve",), ("events", "export")])
def test_what_only_the_machine_itself_can_do_is_refused_in_a_line(far, command):
    ran = far(*command)

    assert ran.code == 2
    assert len(ran.err.splitlines()) == 1


@pytest.mark.usefixtures("far")
def test_inbox_that_nobody_has_logged_in_to_is_one_line(monkeypatch, capfd):
    monkeypatch.setattr(sys, "argv", ["hookonce", "--at", "https://inbox.example", "stats"])

    with pytest.raises(SystemExit) as ended:
        main()

    assert ended.value.code == 4
    assert "run `hookonce login https://inbox.example`" in capfd.readouterr().err
