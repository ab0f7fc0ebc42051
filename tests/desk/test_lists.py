"""Lists of the desk: the rows that they leave out, the ends of their pages, and the fields of each row."""

from datetime import UTC, datetime, timedelta

import pytest

from hookonce.receiver.desk import dead_letters, searches
from hookonce.receiver.desk.entities import skipping
from hookonce.receiver.desk.issues import IssuePath, affected_events, discard_dead_of, trends_of
from hookonce.receiver.desk.registry import Desk
from hookonce.receiver.desk.searches import Needle
from hookonce.receiver.desk.sources import signs
from hookonce.receiver.encryption import OFF
from hookonce.receiver.ledger import handshake_secrets
from hookonce.receiver.ledger.queries.event_filter import Filter
from hookonce.receiver.ledger.store import store
from tests.support.issues import ID, die_of
from tests.support.new_event import new_event
from tests.support.outcomes import put_into_state

SECOND = timedelta(seconds=1)


@pytest.fixture
def desk(here):
    return Desk(here.settings, here.connection, "ann")


def rows(here, action, *fields, **asked):
    return [tuple(row[field] for field in fields) for row in here.ask(action, **asked).json["data"]]


def test_only_a_list_of_dead_events_says_what_each_died_of(here):
    died = die_of(here.connection, "a", "b")
    (waits,) = here.deliver("c")

    listed = here.ask("list_events", status="dead").json["data"]

    assert [(row["id"], [run["handler"] for run in row["dead"]]) for row in listed] == [
        (number, ["shop.credit"]) for number in died[::-1]
    ]
    assert [run["error"] for row in listed for run in row["dead"]] == [
        f"ValueError: no such customer: {name} (shop/handlers.py:12)" for name in "ba"
    ]
    assert rows(here, "list_events", "id", "dead") == [(number, []) for number in (waits, *died[::-1])]


def test_page_that_is_not_full_is_the_last(here):
    numbers = here.deliver("a", "b")

    full, short = (here.ask("list_events", limit=limit).json for limit in (2, 3))

    assert (full["next"], short["next"]) == (f"{numbers[0]:016x}", None)
    assert here.ask("list_events", limit=2, cursor=full["next"]).json["data"] == []


def test_source_that_nobody_has_is_doubted_only_where_nothing_is_found(here):
    here.deliver("a", source="gone")

    hints = [here.ask("list_events", source=name).json["hint"] for name in ("strip", "gone", "stripe")]

    assert "did you mean 'stripe'?" in hints[0]
    assert hints[1:] == [None, None]


def test_issues_are_complete_unless_there_are_more(here):
    die_of(here.connection, "a")
    die_of(here.connection, "b", issue="a" * 12, handler="shop.mail")

    found = [here.ask("list_issues", limit=limit).json for limit in (1, 2)]

    assert [(len(each["data"]), each["is_complete"]) for each in found] == [(1, False), (2, True)]
    assert rows(here, "list_issues", "handler", handler="shop.mail") == [("shop.mail",)]
    assert rows(here, "list_issues", "id", state="fixed") == []
    here.ask("mark_issue", issue=ID, state="fixed")
    assert rows(here, "list_issues", "id", state="fixed") == [(ID,)]
    assert len(rows(here, "list_issues", "id", state="all")) == 2


def test_issue_shows_its_newest_failure_and_the_events_that_it_affects(here, desk):
    numbers = die_of(here.connection, "a", "b")

    shown = here.ask("get_issue", issue=ID).json

    assert (shown["dead"], shown["failures"], shown["event"]) == (2, 2, numbers[1])
    assert (shown["latest"]["issue"], shown["latest"]["handler"]) == (ID, "shop.credit")
    assert [each["event"] for each in shown["occurrences"]] == numbers[::-1]
    assert [(event, len(found)) for event, found in affected_events(desk, ID)] == [
        (number, 1) for number in numbers[::-1]
    ]
    trend = trends_of(desk, [ID, "a" * 12])
    assert {issue: (each.events, sum(each.hours.values())) for issue, each in trend.items()} == {ID: (2, 2)}


def test_dead_events_of_an_issue_are_discarded_and_no_others(here, desk):
    died = die_of(here.connection, "a")
    (other,) = die_of(here.connection, "b", issue="a" * 12)

    discard_dead_of(desk, IssuePath(issue=ID))

    assert rows(here, "list_events", "id", status="discarded") == [(died[0],)]
    assert rows(here, "list_events", "id", status="dead") == [(other,)]
    assert here.ask("get_issue", issue=ID).json["state"] == "open"


def test_open_issue_keeps_its_dead_events(here):
    die_of(here.connection, "a")

    refused = here.ask("mark_issue", issue=ID, state="open", discard=True)

    assert (refused.kind, here.ask("get_issue", issue=ID).json["dead"]) == ("Conflict", 1)


def test_dead_letters_name_the_newest_and_say_where_they_stop(here, monkeypatch):
    monkeypatch.setattr(dead_letters, "MAX_GROUPED", 7)
    numbers = die_of(here.connection, *"abcdef")
    grouped = here.ask("list_dead_letters").json
    die_of(here.connection, "g")

    (group,) = grouped["data"]

    assert (group["count"], group["newest_events"], group["issue"]) == (6, numbers[:0:-1], ID)
    assert (group["sources"], group["example"][:10]) == (["stripe"], "ValueError")
    assert (grouped["is_complete"], here.ask("list_dead_letters").json["is_complete"]) == (True, False)


def test_commands_of_clients_are_listed_by_account_with_their_state(here):
    done, dead = here.deliver("a", "b", source="ship", provider="command", account="ann")
    here.deliver("c", source="ship", provider="command", account="bob")
    here.deliver("d")
    put_into_state(here.connection, done, runs=[("ship", "done", 1)])
    put_into_state(here.connection, dead, runs=[("ship", "dead", 1)])

    assert rows(here, "list_client_commands", "id", "name", "state", account="ann") == [
        (dead, "ship", "failed_final"),
        (done, "ship", "completed"),
    ]
    first = here.ask("list_client_commands", limit=1).json
    assert [row["account"] for row in first["data"]] == ["bob"]
    assert rows(here, "list_client_commands", "id", limit=2, cursor=first["next"]) == [(dead,), (done,)]
    assert here.ask("list_client_commands", limit=4).json["next"] is None
    soon = (datetime.now(UTC) + 30 * SECOND).isoformat()
    assert rows(here, "list_client_commands", "id", since=soon) == []


def test_other_bodies_of_an_event_are_shown_and_given_to_those_who_may_see_them(here):
    (event,) = here.deliver("evt_1", body=b"one")
    store(here.connection, [new_event("evt_1", b"other")])
    (other,) = here.ask("get_event", event=event).json["conflicts"]

    given = here.ask("get_other_body", event=event, body=other["id"], scope="read+bodies")

    assert (given.data, given.name) == (b"other", f"event-{event}-conflict-{other['id']}.bin")
    assert here.ask("get_other_body", event=event, body=other["id"] + 1).kind == "NotFound"
    shown = [
        here.ask("get_event", event=event, bodies=bodies, scope=scope).json
        for bodies, scope in ((True, "read+bodies"), (False, "read+bodies"), (True, "read"))
    ]
    assert [(each["body"], each["conflicts"][0]["body"], each["bytes"]) for each in shown] == [
        ("one", "other", 3),
        (None, None, 3),
        (None, None, None),
    ]


def test_page_of_a_search_goes_on_in_both_directions(here, desk):
    numbers = here.deliver(*"abcdef")[::-1]
    wanted = Filter(source="stripe")

    first = searches.look(desk, wanted, 2, SECOND)
    second = searches.look(desk, wanted, 2, SECOND, before=first.next)
    back = searches.look(desk, wanted, 2, SECOND, after=numbers[4])
    last = searches.look(desk, wanted, 2, SECOND, before=numbers[3])

    assert [[row.id for row in each.rows] for each in (first, second, back, last)] == [
        numbers[:2],
        numbers[2:4],
        numbers[2:4],
        numbers[4:],
    ]
    assert [(each.next, each.has_newer) for each in (first, second, back, last)] == [
        (numbers[1], False),
        (numbers[3], True),
        (numbers[3], True),
        (None, True),
    ]
    assert searches.neighbours(desk, wanted, numbers[2], SECOND) == {"older": numbers[3], "newer": numbers[1]}
    assert searches.neighbours(desk, wanted, numbers[0], SECOND) == {"older": numbers[1], "newer": None}


def test_search_goes_on_where_its_page_ended(here, desk):
    numbers = here.deliver(*"abc", body=b'{"name": "ada"}')
    here.deliver("d", body=b"{}")

    first = searches.look_into(desk, Filter(), Needle("ada"), 2, SECOND)
    rest = searches.look_into(desk, Filter(), Needle("ada"), 2, SECOND, before=first.next)

    assert [row.id for each in (first, rest) for row in each.rows] == numbers[::-1]
    assert (first.next, rest.next, rest.rest) == (numbers[1], None, None)
    found = here.ask("search_bodies", where="$.name=ada", limit=2).json
    assert ([row["id"] for row in found["data"]], found["next"]) == (numbers[:0:-1], f"{numbers[1]:016x}")
    assert here.ask("search_bodies", text="a", where="$.a").kind == "Invalid"
    assert here.ask("search_bodies").kind == "Invalid"


def test_source_says_whether_it_is_paused_and_was_handed_a_secret(here, desk):
    here.deliver("a")
    before = here.ask("get_source", source="stripe").json
    handshake_secrets.keep(here.connection, "stripe", "handed-out-secret", OFF)
    here.ask("pause", kind="source", name="stripe")

    after, now = here.ask("get_source", source="stripe").json, datetime.now(UTC)

    assert (before["is_paused"], before["has_handed_out_secret"]) == (False, False)
    assert (after["is_paused"], after["has_handed_out_secret"]) == (True, True)
    assert now - datetime.fromisoformat(after["last_delivery_at"]) < timedelta(minutes=1)
    assert after["never_came"].startswith("not known: its sender is not asked")
    found = signs(desk)
    assert (found.paused, found.handed, [*found.last]) == ({"stripe"}, {"stripe"}, ["stripe"])


def test_entity_is_shown_of_its_source_and_an_event_that_is_older_is_skipped(here, desk):
    here.connection.execute(
        "INSERT INTO hookonce.entities (source, entity, account, handler, version, event) VALUES "
        "('stripe', 'customer:cus_1', '', 'b', 2, 9), ('stripe', 'customer:cus_1', '', 'a', 1, 8), "
        "('github', 'customer:cus_1', '', 'c', 1, 7)"
    )

    found = rows(here, "get_entity", "handler", "version", source="stripe", entity="customer:cus_1")

    assert found == [("a", 1), ("b", 2)]
    assert skipping(desk, here.deliver("a")) == {}
    here.ask("forget_entity", source="stripe", entity="customer:cus_1")
    assert here.rows("SELECT source FROM hookonce.entities") == [("github",)]


def test_bulk_replay_that_would_take_more_than_was_shown_is_refused(here):
    here.deliver("a", "b", status="dead")

    refused = here.ask("start_bulk_replay", filter={"source": "stripe"}, expected=1)
    begun = here.ask("start_bulk_replay", filter={"status": "dead"}, expected=2)

    assert (refused.kind, refused.json["code"]) == ("Conflict", "changed")
    assert (begun.json["matched"], here.rows("SELECT count(*) FROM hookonce.bulk_replays")) == (2, [(1,)])
    assert here.plan("start_bulk_replay", filter={"status": "held"}).kind == "NotFound"
    assert here.plan("start_bulk_replay", filter={}).kind == "Contradictory"


def test_stats_say_what_is_due_and_how_often_each_secret_and_reason_counted(here):
    here.deliver("a", "b")
    here.deliver("c", status="held")
    store(here.connection, [new_event("a", b"other")])
    here.connection.execute(
        "INSERT INTO hookonce.rejections (source, reason, count) VALUES ('stripe', 'stale', 3)"
    )
    here.connection.execute(
        "INSERT INTO hookonce.secret_use (source, slot, count, last_at) VALUES ('stripe', 2, 4, now())"
    )

    stats = here.ask("get_stats", scope="read").json

    assert (stats["due"], stats["waiting"], stats["conflicts"], stats["keys_reused"]) == (2, 0, 1, 0)
    assert stats["account"] == {"accepted": 3, "received": 2, "held": 1, "pruned": 0, "replayed": 0}
    assert [(each["source"], each["reason"], each["count"]) for each in stats["rejected"]] == [
        ("stripe", "stale", 3)
    ]
    assert [(each["source"], each["slot"], each["count"]) for each in stats["secrets"]] == [("stripe", 2, 4)]


def test_word_is_explained_as_each_kind_of_word_that_it_is(here):
    found = rows(here, "explain_word", "kind", "word", word=" Dead ")

    assert found == [("event status", "dead"), ("run status", "dead")]
    (reason,) = here.ask("explain_word", word="stale").json["data"]
    assert (reason["kind"], bool(reason["do"])) == ("reason", True)


def test_content_is_noted_once_an_hour_for_each_token_and_event(here):
    first, second = here.deliver("a", "b")

    for event in (first, first, second):
        here.ask("get_event", event=event, scope="read+bodies")
    here.ask("get_event", event=first, scope="read")

    assert here.rows("SELECT who, subject FROM hookonce.audit WHERE action = 'look' ORDER BY id") == [
        ("read+bodies (token)", f"event {first}"),
        ("read+bodies (token)", f"event {second}"),
    ]
