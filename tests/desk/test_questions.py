"""Operators' questions that have the same answer beside the ledger and, by `--at`, elsewhere."""

import json

import pytest

from hookonce.receiver.ledger.store import store
from tests.support.new_event import new_event
from tests.support.outcomes import fail, put_into_state

PLACES = pytest.mark.parametrize("place", [[], ["--at", "there"]], ids=["here", "there"])


@pytest.fixture(scope="module")
def dead(inbox):
    """A dead event, the first of the ledger."""
    (row,) = store(inbox.connection, [new_event("evt_dies", type="dies")]).values()
    put_into_state(inbox.connection, row.id, "dead", [("shop.credit", "dead", 1)])
    fail(inbox.connection, row.id, "KeyError: 7")
    return row.id


@PLACES
def test_list_of_dead_events_says_what_each_died_of(everywhere, dead, place):
    [event] = everywhere.run(*place, "events", "list", "--status", "dead", "--json").documents

    assert (event["id"], event["dead"]) == (dead, [{"handler": "shop.credit", "error": "KeyError: 7"}])


@PLACES
def test_dead_events_are_grouped_by_cause_among_those_that_match(everywhere, dead, place):
    grouping = [*place, "events", "list", "--status", "dead", "--group", "--json"]

    [group] = everywhere.run(*grouping, "--type", "dies").documents

    assert (group["handler"], group["error"], group["newest_events"]) == (
        "shop.credit",
        "KeyError: *",
        [dead],
    )
    assert everywhere.run(*grouping, "--type", "other").documents == []


@PLACES
def test_events_are_chosen_by_the_handler_that_ran(everywhere, dead, place):
    found = everywhere.run(*place, "events", "list", "--run-by", "shop.credit", "--json").documents

    assert [event["id"] for event in found] == [dead]


@PLACES
def test_audit_says_what_was_done_since_a_time_and_until_one(everywhere, place):
    everywhere.run(*place, "pause", "github")
    everywhere.run(*place, "resume", "github")

    def done(*span):
        return len(everywhere.run(*place, "audit", "--subject", "source github", *span, "--json").documents)

    assert done("--since", "1h") == done("--since", "yesterday") >= 2
    assert done("--until", "1h") == 0


def test_replay_that_is_refused_leaves_no_line_in_the_audit(everywhere, inbox):
    (row,) = store(inbox.connection, [new_event("evt_ends", type="ends")]).values()
    put_into_state(inbox.connection, row.id, "done", [("shop.credit", "done", 1)])

    told = [
        everywhere.ask(way, "replay", {"events": [str(row.id)]}, ["replay", row.id, "--json"])
        for way in ("command", "at", "api")
    ]

    assert "already done" in told[2]
    assert everywhere.run("audit", "--subject", f"event {row.id}", "--json").documents == []


def test_event_is_edited_and_taken_in_beside_the_ledger(everywhere, inbox, tmp_path):
    body = json.dumps({"id": "evt_edits", "object": "event", "type": "edits", "data": {"object": {"n": 1}}})
    (row,) = store(inbox.connection, [new_event("evt_edits", type="edits", body=body.encode())]).values()
    other = tmp_path / "other.json"
    other.write_text(body.replace('"n": 1', '"n": 2'))

    sent = everywhere.run("events", "edit", row.id, "--body", other)

    assert (sent.code, "sent as event" in sent.err) == (0, True)
    assert inbox.connection.execute(
        "SELECT type, is_test FROM hookonce.events ORDER BY id DESC LIMIT 1"
    ).fetchone() == ("edits", True)


NOTHING = [
    ("list_events", {}, ["events", "list"]),
    ("count_events", {"status": "dead"}, ["replay", "--status", "dead"]),
    ("list_dead_letters", {}, ["events", "list", "--status", "dead", "--group"]),
    ("search_bodies", {"text": "cus_1"}, ["events", "list", "--body", "cus_1"]),
    ("list_rejected", {}, ["rejected", "list"]),
    ("list_conflicts", {}, ["events", "conflicts"]),
]


@pytest.mark.usefixtures("dead")
@pytest.mark.parametrize(("action", "asked", "command"), NOTHING, ids=[each[0] for each in NOTHING])
def test_source_that_nobody_has_is_doubted_by_all_where_nothing_is_found(everywhere, action, asked, command):
    hint = "no source is called 'strip'; did you mean 'stripe'? `hookonce sources list` shows all"
    asked = {**asked, "source": "strip"}

    told = {way: everywhere.ask(way, action, asked, []) for way in ("api", "tool")}
    typed = everywhere.run(*command, "--source", "strip")

    assert {way: answer["hint"] for way, answer in told.items()} == dict.fromkeys(told, hint)
    assert hint in typed.err


@pytest.mark.usefixtures("dead")
@pytest.mark.parametrize("page", ["events?", "bulk/new?status=dead&"])
def test_source_that_nobody_has_is_doubted_by_the_pages(everywhere, page):
    shown = everywhere.browser.get(f"/admin/{page}source=strip").text

    assert "no source is called &#39;strip&#39;; did you mean &#39;stripe&#39;?" in shown
    assert "no source is called" not in everywhere.browser.get(f"/admin/{page}source=github").text


@PLACES
@pytest.mark.parametrize("noun", ["audit", "commands", "limits", "replays", "workers"])
def test_every_noun_is_listed_by_list(everywhere, place, noun):
    listed, alone = everywhere.run(*place, noun, "list"), everywhere.run(*place, noun)

    assert (listed.code, listed.out) == (0, alone.out)
