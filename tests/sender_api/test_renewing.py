import json
from datetime import datetime, timedelta

import pytest

from hookonce.receiver.ledger.maintenance import sender_api as ledger
from tests.support.fake_senders import Google, Graph, json_of

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
APP = json.dumps({"appId": "a-1", "displayName": "hookonce", "password": "p~1", "tenant": "t-1"})
GRAPH = """
[sources.microsoft_graph]
secrets = ["env:STATE"]
api_key = "env:GRAPH_APP"
renew = [{ resource = "me/mailFolders('Inbox')/messages", changes = "created" }]
"""
CALENDAR = "https://www.googleapis.com/calendar/v3/calendars/my_calendar@gmail.com/events/watch"
GOOGLE = f"""
[sources.google_drive]
secrets = ["env:STATE"]
api_key = "env:GOOGLE_TOKEN"
renew = [{{ resource = "{CALENDAR}", lasts = "7d" }}]
"""
KEYS = {"STATE": "whsec_test", "GRAPH_APP": APP, "GOOGLE_TOKEN": "ya29.token"}


@pytest.fixture
def graph(world):
    made = world.serve(Graph(world.clock))
    # Tokens come from another host of the sender's, which is served here too.
    made.host = "graph.microsoft.com"
    login = world.serve(Graph(world.clock))
    login.host = "login.microsoftonline.com"
    made.login = login
    world.configure(GRAPH, **KEYS)
    return made


@pytest.fixture
def google(world):
    made = world.serve(Google(world.clock))
    world.configure(GOOGLE, **KEYS)
    return made


def state(world):
    [row] = world.rows("SELECT id, expires_at, made, problem FROM hookonce.subscriptions")
    return row


def test_subscription_is_made_with_the_url_and_secret_of_its_source(world, graph):
    world.turn()

    [(name, made)] = graph.living().items()
    assert made["notificationUrl"] == "https://hooks.example.com/hooks/microsoft_graph"
    assert made["clientState"] == "whsec_test"
    assert made["changeType"] == "created"
    assert state(world)[:3] == (name, datetime.fromisoformat(made["expirationDateTime"]), 1)


def test_subscription_lives_on_for_a_month_though_it_is_deleted_twice(world, graph):
    gaps, gone_since = [], None
    for hour in range(30 * 24):
        if hour in {100, 500}:
            graph.subscriptions.clear()
        if not graph.living():
            gone_since = gone_since or world.clock()
        world.turn()
        if gone_since and graph.living():
            gaps.append(world.clock() - gone_since)
            gone_since = None
        assert graph.living()
        world.clock.sleep(3600)

    assert max(gaps) <= HOUR
    assert graph.made == 3
    assert state(world)[2] == 3
    assert len(graph.login.requests) >= 30 * 24 / 2


def test_subscription_of_somebody_else_is_left_alone(world, graph):
    graph.subscriptions["foreign"] = {"expirationDateTime": "2999-01-01T00:00:00Z"}

    world.pass_time(DAY, HOUR)

    assert not [path for _, path in graph.calls if "foreign" in path]
    assert "foreign" in graph.subscriptions


def test_renewal_that_fails_is_told_and_tried_again(world, graph, caplog):
    world.turn()
    graph.next_answers = [json_of({"error": {"code": "Forbidden", "message": "…"}}, 403)]
    world.clock.sleep(3600)

    world.turn()

    told = "answered 403 (Forbidden): the key lacks a right"
    assert state(world)[3] == told
    assert f"was not renewed: {told}" in caplog.text
    assert "p~1" not in caplog.text
    world.clock.sleep(600)
    world.turn()
    assert state(world)[3] is None


def test_subscription_that_was_made_again_is_told(world, graph, caplog):
    world.turn()
    graph.subscriptions.clear()
    world.clock.sleep(3600)

    world.turn()

    assert "was gone, and was made again" in caplog.text


def test_channel_is_replaced_before_it_ends_and_the_old_one_stopped(world, google):
    world.turn()
    [first] = google.channels

    world.pass_time(4 * DAY, 12 * HOUR)

    [second] = google.channels
    assert second != first
    assert google.channels[second]["token"] == "whsec_test"
    paths = [path for _, path in google.calls]
    assert paths.count("/calendar/v3/channels/stop") == 1
    assert len(paths) == 3
    assert state(world)[1] > world.clock() + 3 * DAY


def test_subscription_without_a_secret_here_is_told(world):
    graph = world.serve(Graph(world.clock))
    world.configure(GRAPH, GRAPH_APP="eyJ0")

    world.turn()

    assert state(world)[3] == "source 'microsoft_graph' has no secret here; set STATE"
    assert not graph.requests


def test_subscription_that_is_wanted_no_more_is_left_to_run_out(world, graph):
    world.turn()
    world.configure(GRAPH.replace("me/mailFolders('Inbox')/messages", "me/events"), **KEYS)
    world.pass_time(3 * DAY, 12 * HOUR)

    left = ledger.subscriptions(world.connection, world.settings.sources.values())

    assert [each.resource for each in left] == ["me/events"]
    assert [each["resource"] for each in graph.living().values()] == ["me/events"]
