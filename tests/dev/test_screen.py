import json
from contextlib import ExitStack
from types import SimpleNamespace

import pytest

from hookonce.receiver.cli.dev.screen import Screen
from hookonce.receiver.cli.output.printing import say
from hookonce.receiver.ledger.database import connections
from tests.support.inbox import inbox

__all__ = ["inbox"]


@pytest.fixture
def connects(monkeypatch):
    made, real = [], connections.connect

    def connect(*given, **options):
        made.append(real(*given, **options))
        return made[-1]

    monkeypatch.setattr(connections, "connect", connect)
    return made


def failed(event):
    record = {"time": "", "level": "ERROR", "logger": "hookonce.jobs", "message": "run", "source": "stripe"}
    return json.dumps(record | {"status": "dead", "event": event, "handler": "credit", "attempt": 1})


def test_failed_runs_are_shown_over_one_connection_which_is_made_again_once_it_has_broken(
    inbox, connects, capsys
):
    def credit(event, _):
        raise LookupError(f"no customer of {event.event_id}")

    inbox.on(credit, attempts=1)
    events = inbox.deliver("a", "b", "c")
    inbox.work()
    connects.clear()

    with ExitStack() as kept:
        screen = Screen(SimpleNamespace(settings=inbox.settings), [], kept, is_watching=False)
        for event in events[:2]:
            screen.show("worker", failed(event))
        connects[-1].close()
        screen.show("worker", failed(events[2]))

    assert [each.closed for each in connects] == [True, True]
    said = capsys.readouterr().out
    assert [name for name in "abc" if f"no customer of {name}" in said] == ["a", "b", "c"]


def test_line_of_our_own_is_as_wide_as_the_terminal(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")

    say("deliveries wait " * 12)

    first, *further = capsys.readouterr().out.splitlines()
    assert max(map(len, (first, *further))) <= 80
    assert {len(line) - len(line.lstrip()) for line in further} == {10}
