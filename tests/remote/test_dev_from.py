"""Events of an inbox come into another, as `hookonce dev --from` has them: each once and in order."""

import errno
import json
import threading
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from hookonce.receiver.cli.dev.pulling import Origin, Pulling
from hookonce.receiver.encryption import OFF
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.remote import pull
from hookonce.receiver.remote.errors import RemoteError
from hookonce.receiver.remote.profiles import Profile
from hookonce.receiver.remote.pull import CursorFile, Wanted
from tests.cli.conftest import hookonce, place  # noqa: F401  fixtures
from tests.support.odd_server import answering, reply

pytestmark = pytest.mark.usefixtures("home", "place")

BEGUN = {"id": 1, "cursor": "a", "has_bodies": True, "oldest_at": None}
LAST = {"data": [], "next": "b", "behind": 0, "wait": 0}
GOOD = {
    "id": 1,
    "source": "stripe",
    "provider": "stripe",
    "event_id": "evt_1",
    "type": "invoice.paid",
    "fingerprint": "0" * 64,
    "id_is_signed": True,
    "url": "/hooks/stripe",
    "headers": {},
    "body_b64": "e30=",
}


@pytest.fixture(autouse=True)
def _soon(monkeypatch):
    monkeypatch.setattr(pull, "LONGEST_WAIT", timedelta(seconds=0.05))
    monkeypatch.setattr(pull, "pause", lambda *_: timedelta(seconds=0.01))


class Here:
    """A developer's inbox, as far as a pull needs it."""

    def __init__(self, url, redis_url, folder):
        self.settings = SimpleNamespace(
            database_url=url, redis_url=redis_url, data=folder, sources={}, keyring=OFF
        )
        self.connection = connections.connect(url)

    def pull(self, origin):
        ended = threading.Event()
        timer = threading.Timer(6, ended.set)
        timer.start()
        Pulling(self, origin).follow(ended)
        timer.cancel()
        assert not ended.is_set()

    def rows(self, query):
        return self.connection.execute(query).fetchall()

    @property
    def names(self):
        return [name for (name,) in self.rows("SELECT event_id FROM hookonce.events ORDER BY id")]


@pytest.fixture
def here(fresh_database, redis_url, tmp_path):
    with fresh_database() as url:
        made = Here(url, redis_url, tmp_path / "data")
        yield made
        made.connection.close()


def hours_ago(hours):
    return datetime.now(UTC) - timedelta(hours=hours)


def origin(served, *scopes, hours=1, is_test=True, **wanted):
    profile = Profile("prod", served.url, served.token("ada", *(scopes or ("read", "bodies"))))
    return Origin(profile, Wanted(hours_ago(hours), **wanted), follows=False, is_test=is_test)


def pull_of(here, *answers):
    """Pull from something that gives these answers, each a status and a document."""
    with answering(*(reply(status, json.dumps(document).encode()) for status, document in answers)) as odd:
        profile = Profile("prod", odd.url, "hko_" + "a" * 43)
        here.pull(Origin(profile, Wanted(hours_ago(1)), follows=False, is_test=True))


def test_events_of_another_inbox_are_here_once_and_in_order(served, here):
    bodies = {f"evt_{n}": b'{"n":  %d}\xff' % n for n in (7, 3, 9, 1)}
    for name, body in bodies.items():
        served.inbox.deliver(name, body=body)
    from_there = origin(served)

    here.pull(from_there)
    served.inbox.deliver("evt_0")
    here.pull(from_there)

    assert here.names == [*bodies, "evt_0"]
    kept = here.rows("SELECT body FROM hookonce.bodies ORDER BY event LIMIT 4")
    assert [bytes(body) for (body,) in kept] == list(bodies.values())
    assert here.rows("SELECT DISTINCT status FROM hookonce.event_states") == [("received",)]


def test_pulled_event_is_a_test_and_says_where_it_came_from(served, here):
    (number,) = served.inbox.deliver("evt_1", headers='{"a": "b", "hookonce-origin": "[secret]"}')

    here.pull(origin(served))

    ((is_test, headers),) = here.rows(
        "SELECT e.is_test, b.headers FROM hookonce.events e JOIN hookonce.bodies b ON b.event = e.id"
    )
    assert is_test
    assert headers["hookonce-origin"] == f"{served.url} {number}"
    assert headers["hookonce-received-at"].startswith("20")
    assert "hookonce-redacted" not in headers
    assert headers["a"] == "b"


def test_events_are_real_if_one_says_so_and_those_that_were_tests_stay_so(served, here):
    served.inbox.deliver("evt_1")
    served.inbox.deliver("evt_2", is_test=True)

    here.pull(origin(served, is_test=False))

    assert here.rows("SELECT is_test FROM hookonce.events ORDER BY id") == [(False,), (True,)]


def test_pull_takes_what_is_wanted_and_counts_what_can_not_be_run(served, here, capsys):
    served.inbox.deliver("evt_1", type="invoice.paid")
    served.inbox.deliver("evt_2", type="charge.failed")
    (gone,) = served.inbox.deliver("evt_3")
    served.inbox.connection.execute("DELETE FROM hookonce.bodies WHERE event = %s", [gone])

    here.pull(origin(served, type="invoice.*"))

    assert here.names == ["evt_1"]
    assert "1 new, 1 without a body; that is all of it" in capsys.readouterr().out


def test_what_was_stored_when_the_cursor_could_not_be_kept_is_known_afterwards(
    served, here, monkeypatch, capsys
):
    def full(*_):
        raise OSError(errno.ENOSPC, "no space is left", "the disk")

    served.inbox.deliver("evt_1", "evt_2")
    from_there = origin(served)
    with monkeypatch.context() as patch:
        patch.setattr(pull, "write_whole", full)
        here.pull(from_there)
    told = capsys.readouterr().err

    here.pull(from_there)

    assert "nothing more is pulled" in told
    assert here.rows("SELECT event_id, deliveries FROM hookonce.event_states ORDER BY id") == [
        ("evt_1", 1),
        ("evt_2", 1),
    ]


def test_token_without_bodies_is_refused_with_what_to_do(served, here, capsys):
    served.inbox.deliver("evt_1")

    here.pull(origin(served, "read"))

    assert "hookonce tokens create NAME --scope read --scope bodies" in capsys.readouterr().err
    assert here.names == []


def test_pull_outlasts_an_inbox_that_is_away_and_tells_of_it_once(here, capsys):
    pull_of(here, (503, {}), (503, {}), (201, BEGUN), (502, {}), (200, LAST))

    said = capsys.readouterr().out
    assert said.count("it is tried again until it answers") == said.count("answers again") == 1
    assert "that is all of it" in said


@pytest.mark.parametrize(
    "page",
    [{}, LAST | {"data": {}}, LAST | {"next": 7}, LAST | {"behind": -1}, LAST | {"next": "b" * 20_000}],
    ids=["nothing", "no list", "no cursor", "negative", "a long cursor"],
)
def test_what_is_no_inbox_ends_the_pull_with_a_line(here, capsys, page):
    pull_of(here, (201, BEGUN), (200, page))

    assert "is no inbox that this version knows" in capsys.readouterr().err


def test_event_that_can_not_be_one_is_counted_and_the_others_come(here, capsys):
    wrong = [GOOD | {"source": "../etc"}, GOOD | {"body_b64": "?"}, GOOD | {"headers": 1}, {}]

    pull_of(here, (201, BEGUN), (200, LAST | {"data": [*wrong, GOOD]}), (200, LAST))

    assert here.names == ["evt_1"]
    lines = capsys.readouterr().out.splitlines()
    assert "an event is not as expected: source: " in lines[0]
    assert f"1 new, {len(wrong)} not as expected; that is all of it" in lines[-1]


def test_redacted_event_is_marked(here):
    pull_of(here, (201, BEGUN), (200, LAST | {"data": [GOOD | {"is_redacted": True}]}), (200, LAST))

    assert here.rows("SELECT headers->>'hookonce-redacted' FROM hookonce.bodies") == [("yes",)]


def test_inbox_that_is_another_ledger_by_now_is_pulled_anew(served, here, capsys):
    served.inbox.deliver("evt_1")
    from_there = origin(served)
    here.pull(from_there)
    served.inbox.connection.execute("UPDATE hookonce.ledger SET id = gen_random_uuid()")
    served.inbox.deliver("evt_2")

    here.pull(from_there)

    assert here.names == ["evt_1", "evt_2"]
    assert "it is pulled again" in capsys.readouterr().out


def test_inbox_that_has_dropped_what_was_to_come_says_from_when_on_it_has_events(served, here, capsys):
    served.inbox.deliver("evt_1")
    from_there = origin(served)
    here.pull(from_there)
    before = capsys.readouterr().out
    served.inbox.connection.execute("DELETE FROM hookonce.queue")
    served.inbox.connection.execute("DELETE FROM hookonce.bodies")
    served.inbox.connection.execute("DELETE FROM hookonce.events")
    served.inbox.deliver("evt_9")
    (at,) = served.inbox.rows(
        "UPDATE hookonce.events SET received_at = received_at + interval '1 min' RETURNING received_at"
    )[0]

    here.pull(from_there)

    told = f"{served.url} has events from {at.isoformat(timespec='seconds')} on; none before is there"
    assert (told in before, told in capsys.readouterr().out) == (False, True)


def test_network_that_asks_for_a_sign_in_is_waited_through(here, capsys):
    answers = [reply(201, json.dumps(BEGUN).encode()), reply(200, json.dumps(LAST | {"behind": 1}).encode())]
    portal = [reply(302, Location="https://portal.example/"), reply(200, b"<html>", "text/html")]

    with answering(*answers, *portal, reply(200, json.dumps(LAST).encode())) as odd:
        profile = Profile("prod", odd.url, "hko_" + "a" * 43)
        here.pull(Origin(profile, Wanted(hours_ago(1)), follows=False, is_test=True))

    said = capsys.readouterr().out
    assert "redirects to portal.example" in said
    assert "answers again" in said
    assert "that is all of it" in said


def test_older_events_are_pulled_if_they_are_asked_for_later(served, here):
    served.inbox.deliver("evt_old")
    served.inbox.connection.execute("UPDATE hookonce.bodies SET received_at = received_at - interval '5 h'")
    served.inbox.connection.execute("UPDATE hookonce.events SET received_at = received_at - interval '5 h'")
    served.inbox.deliver("evt_new")
    from_there = origin(served)
    here.pull(from_there)
    before = here.names

    here.pull(Origin(from_there.profile, Wanted(hours_ago(9)), follows=False, is_test=True))

    assert (before, here.names) == (["evt_new"], ["evt_new", "evt_old"])


def test_cursor_is_of_one_process_at_a_time_and_for_its_owner(tmp_path):
    path = tmp_path / "pulls" / "a.json"
    with CursorFile(path).held():
        file = CursorFile(path)
        with pytest.raises(RemoteError, match="another process"), file.held():
            pass
        file.keep(cursor="x", since=hours_ago(1))

    assert path.stat().st_mode & 0o777 == 0o600
    path.write_text("{")
    with pytest.raises(RemoteError, match="remove it to start over"), CursorFile(path).held():
        pass


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--since", "2h"], 2, "name it"),
        (["--follow"], 2, "name it"),
        (["--from", "prod"], 4, "hookonce login"),
        (["--from", "http://inbox.example"], 2, "in the clear"),
    ],
)
def test_dev_refuses_what_it_can_not_pull(hookonce, arguments, code, said):  # noqa: F811
    refused = hookonce("dev", *arguments)

    assert (refused.code, said in refused.err) == (code, True), refused.err
