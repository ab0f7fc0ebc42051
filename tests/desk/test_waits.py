import pytest

from tests.support.outcomes import put_into_state


@pytest.fixture
def waiting(here):
    """Two events; on each two handlers wait for another event."""
    events = here.deliver("a", "b")
    for event in events:
        put_into_state(here.connection, event, runs=[("ship", "waiting", 0), ("bill", "waiting", 0)])
    here.connection.execute(
        "INSERT INTO hookonce.waits (event, handler, cycle, name, key, source, type, until) "
        "SELECT event, handler, cycle, 'ci', decode('ab', 'hex'), 'stripe', 'check', now() + interval '1 day' "
        "FROM hookonce.queue"
    )
    return events


def waits(told):
    return [(each["event"], each["handler"]) for each in told.json["data"]]


def test_waits_are_listed_by_event_and_by_handler(here, waiting):
    first, second = waiting

    assert len(waits(here.ask("list_waits"))) == 4
    assert waits(here.ask("list_waits", handler="ship")) == [(first, "ship"), (second, "ship")]
    assert sorted(waits(here.ask("list_waits", event="stripe:b"))) == [(second, "bill"), (second, "ship")]
    assert here.ask("list_waits", event="stripe:c").kind == "NotFound"


def test_plan_of_a_wake_shows_the_wait_that_it_would_end(here, waiting):
    planned = here.plan("wake", event="stripe:b", handler="bill")

    assert waits(planned) == [(waiting[1], "bill")]
    assert here.rows("SELECT FROM hookonce.waits WHERE until <= now()") == []


def test_wake_ends_the_wait_of_one_handler_on_one_event(here, waiting):
    here.plan("wake", event="stripe:b", handler="bill")

    assert here.confirm().kind == "done"
    assert here.notified
    assert here.rows("SELECT event, handler FROM hookonce.waits WHERE until <= now()") == [
        (waiting[1], "bill")
    ]
    assert here.rows("SELECT action, subject FROM hookonce.audit") == [("wake", f"event {waiting[1]}")]


def none_waits(here, event):
    here.connection.execute("UPDATE hookonce.waits SET ended_at = now() WHERE event = %s", [event])


def is_under_way(here, event):
    put_into_state(here.connection, event, runs=[("bill", "running", 1)])


@pytest.mark.parametrize("prepare", [none_waits, is_under_way])
@pytest.mark.parametrize("way", ["ask", "plan"])
def test_wake_is_refused_where_the_run_does_not_wait(here, waiting, prepare, way):
    prepare(here, waiting[1])

    refused = getattr(here, way)("wake", event="stripe:b", handler="bill")

    assert (refused.kind, refused.json["code"]) == ("Conflict", "no_wait")
    assert here.rows("SELECT FROM hookonce.audit") == []
