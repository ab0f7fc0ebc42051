"""Content is planted wherever the ledger keeps some, and looked for in the answers to all actions under all tokens."""

import ast
import json
import pickle
import re
from base64 import b64decode
from pathlib import Path

import pytest

import hookonce
from hookonce.receiver.api.routes import BY_NAME, OPERATIONS
from hookonce.receiver.encryption import OFF
from hookonce.receiver.ledger import steps
from hookonce.receiver.ledger.access import api_tokens, audit_log
from hookonce.receiver.ledger.access.api_tokens import Scope
from hookonce.receiver.ledger.access.audit_log import Change
from hookonce.receiver.ledger.queries import event_details, failures, rejected, run_outcomes
from hookonce.receiver.ledger.queries.event_details import Detail, OtherBody, Run
from hookonce.receiver.ledger.queries.event_filter import Filter
from hookonce.receiver.ledger.queries.failures import Failure
from hookonce.receiver.ledger.queries.run_outcomes import Outcome
from hookonce.receiver.ledger.rejected import Rejection
from hookonce.receiver.ledger.replay import bulk
from hookonce.receiver.ledger.replay.bulk import BulkReplay
from hookonce.receiver.ledger.results import AttemptLog
from hookonce.receiver.ledger.rows import ResponseModel
from hookonce.receiver.ledger.stats import counters, issues
from hookonce.receiver.ledger.stats.counters import BatchFigures
from hookonce.receiver.ledger.stats.issues import IssueRow
from hookonce.receiver.ledger.steps import Step
from hookonce.receiver.ledger.withheld import Content, ContentRow, brief
from tests.support.issues import ID, die_of

PLANTED, PROOF = "planted-4711", "c0ffee" * 8
TOKENS = {
    "no token": None,
    "no scope": [],
    "read": [Scope.READ],
    "replay": [Scope.REPLAY],
    "read+replay": [Scope.READ, Scope.REPLAY],
    "bodies": [Scope.BODIES],
    "read+bodies": [Scope.READ, Scope.BODIES],
    "all but admin": [Scope.READ, Scope.BODIES, Scope.REPLAY],
    "admin": [Scope.ADMIN],
}
BLIND = [name for name, scopes in TOKENS.items() if not {Scope.BODIES, Scope.ADMIN} & {*(scopes or ())}]
ERROR = f"ValueError: no customer {PLANTED}: {PLANTED} (shop/handlers.py:12)"
HANDLER = "shop.credit"
BODY = json.dumps({"id": "evt_1", "said": PLANTED}).encode()
HEADERS = json.dumps({
    "x-said": PLANTED,
    "stripe-signature": f"t=1,v1={PROOF}",
    "x-hub-signature-256": f"sha256={PROOF}",
    "authorization": f"Bearer {PROOF}",
})  # fmt: skip
FRAME = {"file": "shop/handlers.py", "line": 12, "function": "credit", "code": ["raise x"], "is_users": True,
         "local_values": [["customer", f"'{PLANTED}'"]]}  # fmt: skip
TRACEBACK = json.dumps({
    "errors": [
        {"said": f"OSError: {PLANTED} ({PLANTED}/shop.py:12)", "link": "cause"},
        {
            "said": f"ValueError: no customer {PLANTED}",
            "frames": [FRAME],
            "inner": [{"number": 1, "of": 1, "errors": [{"said": f"KeyError\nnote: {PLANTED}"}]}],
        },
    ]
}).encode()  # fmt: skip
LINES = json.dumps([0, [1, "info", "shop", PLANTED], [2, "", "call", f"GET /{PLANTED}", 5]]).encode()
DEAD, DONE = 1, 2
PATHS = {"event": DEAD, "issue": ID, "source": "stripe", "handler": HANDLER, "kind": "handler", "name": HANDLER,
         "body": 1, "pull": 1, "bulk": 1, "word": "dead", "rejection": 1, "entity": "customer:cus_1"}  # fmt: skip
ASKED = {
    "list_events": [{"status": "dead"}, {"error": f"*{PLANTED}*"}],
    "list_audit": [{}, {"action": "bulk replay"}],
    "count_events": [{"error": f"*{PLANTED}*"}],
    "list_dead_letters": [{"status": "dead"}, {"error": f"*{PLANTED}*"}],
    "search_bodies": [{"text": PLANTED}, {"where": f"$.said={PLANTED}"}],
    "replay": [{"events": [DEAD], "dry_run": True}],
    "release": [{"events": [DONE]}],
    "erase_events": [{"events": [DEAD], "dry_run": True}],
    "start_bulk_replay": [{"filter": {"status": "dead", "error": f"*{PLANTED}*"}, "expected": 0}],
    "begin_pull": [{"since": "2020-01-01T00:00:00Z"}],
    "decide_step": [{"handler": HANDLER, "step": "mail", "decision": "done", "result": 1}],
    "mark_issue": [{"state": "open"}],
    "send_edited_event": [{"body": "{}"}],
    "reverify_source": [{"dry_run": True}],
    "prune": [{"dry_run": True}],
}
"""What is asked of actions that take more than a path; others are asked without anything."""


MAIL = "UPDATE hookonce.steps SET state = 'failed_final', note = %s, result = NULL WHERE name = 'mail'"
PLANTS = [
    ("UPDATE hookonce.failures SET error = %s, traceback = %s", [ERROR, TRACEBACK]),
    ("UPDATE hookonce.runs SET status = 'done', result = %s WHERE event = 2", [json.dumps(PLANTED)]),
    (
        """INSERT INTO hookonce.run_logs (event, handler, cycle, attempt, received_at, lines)
        SELECT event, handler, cycle, attempt, now(), %s FROM hookonce.failures""",
        [LINES],
    ),
    (
        """INSERT INTO hookonce.conflicts (event, fingerprint, headers, body)
        VALUES (1, '\\x01', %(headers)s, %(text)s), (1, '\\x02', '{}', %(binary)s)""",
        {"headers": HEADERS, "text": BODY, "binary": b"\xff" + BODY},
    ),
    (
        """INSERT INTO hookonce.rejected (rejected_at, source, reason, detail, headers, body_prefix)
        VALUES (now(), 'stripe', 'stale', 'the time is too old', %s, %s)""",
        [HEADERS, BODY],
    ),
    (
        """INSERT INTO hookonce.entities (source, entity, account, handler, version, event)
        VALUES ('stripe', 'customer:cus_1', '', %s, 1, 1)""",
        [HANDLER],
    ),
    ("INSERT INTO hookonce.batch_counts VALUES (%s, 0, 0, 1, %s)", [HANDLER, ERROR]),
    (
        """INSERT INTO hookonce.queue (event, n, received_at, source, type, handler, due_at, waits)
        VALUES (0, 0, now(), 'stripe', 'a', %s, now(), 'batch:0001:0')""",
        [HANDLER],
    ),
    (
        """INSERT INTO hookonce.steps (event, handler, name, state, owner, finished_at, note, result) VALUES
        (1, %(handler)s, 'charge', 'completed', gen_random_uuid(), now(), NULL, %(result)s),
        (1, %(handler)s, 'mail', 'failed_final', gen_random_uuid(), NULL, %(error)s, NULL)""",
        {"handler": HANDLER, "result": json.dumps(PLANTED).encode(), "error": ERROR},
    ),
]
"""Statements, with their values, that put content wherever the ledger keeps some."""


@pytest.fixture
def planted(planted_once):
    """The inbox with all that was planted, whatever a test before has decided."""
    planted_once.connection.execute(MAIL, [ERROR])
    return planted_once


@pytest.fixture(scope="module")
def planted_once(inbox):
    connection = inbox.connection
    url = f"https://x.example/hooks/stripe?said={PLANTED}"
    die_of(connection, "evt_1", body=BODY, headers=HEADERS, url=url)
    die_of(connection, "evt_2", body=BODY, headers=HEADERS, url="/")
    for statement, values in PLANTS:
        connection.execute(statement, values)
    started = bulk.start(connection, Filter(status="dead", error=f"*{PLANTED}*"), "a test")
    bulk.stop(connection, started.id, "a test")
    inbox.tokens = {"no token": None} | {
        name: api_tokens.create(connection, name.replace(" ", "-").replace("+", "_"), scopes, None, "a test")
        for name, scopes in TOKENS.items()
        if scopes is not None
    }
    return inbox


def answers(inbox, token, operation):
    """Ask for one operation everything that there is to ask; yield the answers."""
    named = PATHS | {"bulk": 999} if operation.action.changes else PATHS
    path = operation.path.format_map(named)
    if operation.name in {"pull_events", "pull_event"}:
        begun = inbox.app.test_client().post(
            "/api/v1/pulls", json={"since": "2020-01-01T00:00:00Z"}, headers=bearer(inbox.tokens[token])
        )
        said = begun.get_json()
        path = operation.path.format_map(PATHS | {"pull": said.get("id", 1), "event": DEAD})
        asked = [{"cursor": said.get("cursor", "")}] if operation.name == "pull_events" else [None]
    else:
        asked = ASKED.get(operation.name, [None])
    for each in asked:
        options = {"query_string": each or {}} if operation.method == "GET" else {"json": each or {}}
        if operation.method != "GET" and "body" not in operation.inputs:
            options = {}
        client = inbox.app.test_client(use_cookies=False)
        yield client.open(
            f"/api/v1{path}", method=operation.method, headers=bearer(inbox.tokens[token]), **options
        )


def bearer(token):
    return {"Authorization": f"Bearer {token}"} if token else {}


def text_of(answer):
    """The text of an answer with what it holds in base64."""
    text = answer.get_data().decode(errors="replace") + str(answer.headers)
    return text + "".join(
        b64decode(found).decode(errors="replace") for found in re.findall(r'"body_b64": "([^"]+)"', text)
    )


@pytest.mark.parametrize("token", TOKENS)
def test_planted_text_is_in_no_answer_without_the_scope_bodies(planted, token):
    wrong = {}
    for operation in OPERATIONS:
        if operation.name in {"forget_window", "send_test_alert"}:
            continue
        for answer in answers(planted, token, operation):
            text = text_of(answer)
            assert answer.status_code < 500, (operation.name, text)
            if PROOF in text or (token in BLIND and PLANTED in text.replace(f"'{PLANTED}'", "")):
                wrong.setdefault(operation.name, text[:600])

    assert wrong == {}


CONTENT = {
    *("list_events", "get_event", "get_event_body", "get_other_body", "list_dead_letters", "list_issues"),
    *(
        "get_issue",
        "list_rejected",
        "get_rejected",
        "list_steps",
        "list_stopped_steps",
        "pull_events",
        "pull_event",
    ),
    *("get_stats", "list_handlers", "list_bulk_replays", "get_bulk_replay", "list_audit"),
}


@pytest.mark.parametrize("token", ["read+bodies", "admin"])
def test_planted_text_is_in_the_answers_with_it(planted, token):
    shown = {
        name
        for name in CONTENT
        for answer in answers(planted, token, BY_NAME[name])
        if PLANTED in text_of(answer)
    }

    assert shown == CONTENT


def test_search_needs_the_scope_bodies_and_says_so(planted):
    asked = [("search_bodies", 2), ("count_events", 1), ("get_event_body", 1), ("diff_event", 1)]

    for name, number in asked:
        refused = list(answers(planted, "read", BY_NAME[name]))
        assert [answer.status_code for answer in refused] == [403] * number
        assert 'scope="bodies"' in refused[0].headers["WWW-Authenticate"]


def test_reader_without_content_sees_class_code_handler_file_and_line(planted):
    (answer,) = answers(planted, "read", BY_NAME["get_event"])

    (run,), (failure,) = answer.json["runs"], answer.json["failures"]
    frame = failure["frames"]["errors"][1]["frames"][0]
    assert run["error"] == failure["error"] == "ValueError (shop/handlers.py:12)"
    assert (failure["handler"], frame["file"], frame["line"]) == (HANDLER, "shop/handlers.py", 12)
    assert (frame["function"], frame["code"]) == ("credit", ["raise x"])


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (f"ValueError: {PLANTED}", "ValueError"),
        (f"ValueError: a\n{PLANTED}: b (a/b.py:1)", "ValueError (a/b.py:1)"),
        (f"GiveUp: {PLANTED} (shop.py)", "GiveUp"),
        ("ValueError (a/b.py:1)", "ValueError (a/b.py:1)"),
        (f"odd name: {PLANTED}", "odd name"),
        (f"ValueError\n{PLANTED}", "ValueError"),
        ("the worker stopped in the middle", "the worker stopped in the middle"),
    ],
)
def test_error_is_shown_without_what_it_says(error, shown):
    assert brief(error) == shown


def test_content_that_is_shown_is_in_the_audit(planted):
    list(answers(planted, "read+bodies", BY_NAME["get_event"]))

    noted = planted.connection.execute(
        "SELECT who, subject FROM hookonce.audit WHERE action = 'look'"
    ).fetchall()
    assert ("read_bodies (token)", f"event {DEAD}") in noted
    assert not any(who.startswith(("read (", "replay (")) for who, _ in noted)


ROWS = {
    Detail: lambda ledger: [event_details.detail(ledger, DEAD, OFF)],
    Run: lambda ledger: [
        run for event in (DEAD, DONE) for run in event_details.detail(ledger, event, OFF).runs
    ],
    Failure: lambda ledger: [failures.latest_of_issue(ledger, ID, OFF)],
    OtherBody: lambda ledger: event_details.detail(ledger, DEAD, OFF).conflicts,
    AttemptLog: lambda ledger: event_details.detail(ledger, DEAD, OFF).logs,
    Step: lambda ledger: steps.of_event(ledger, DEAD, OFF),
    Rejection: lambda ledger: rejected.rejected_deliveries(ledger, OFF, 9),
    IssueRow: issues.listing,
    Outcome: lambda ledger: run_outcomes.outcomes(ledger, [DEAD]),
    BatchFigures: counters.batch_figures,
    BulkReplay: bulk.listing,
    Change: lambda ledger: audit_log.latest(ledger, 200, action="bulk replay"),
}
"""Kinds of rows with content, and how each is read from the ledger."""
SAYS = {"error", "note", "result", "lines", "headers", "url", "body", "body_b64", "body_prefix", "traceback"}
NOT_CONTENT = {("Breaker", "error"), ("LogLine", "text")}
"""Fields of the ledger's rows that are called like content: a breaker's error is a class and a place."""


def kinds(of):
    return {each for kind in of.__subclasses__() for each in {kind, *kinds(kind)}}


def of_the_ledger(base):
    return {
        each for each in kinds(base) if ".ledger." in each.__module__ and not each.__name__.startswith("_")
    }


def test_every_kind_of_row_with_content_is_looked_at():
    assert of_the_ledger(ContentRow) == {*ROWS}


@pytest.mark.parametrize("kind", ROWS, ids=lambda kind: kind.__name__)
def test_row_of_the_ledger_shows_no_content_until_it_is_asked_for_it(planted, kind):
    rows = ROWS[kind](planted.connection)

    ways = (repr, str, lambda row: str(dict(row)), pickle.dumps)
    ways += () if kind is Detail else (lambda row: str(row.model_dump()), lambda row: row.model_dump_json())
    shown = [str(way(row)) for row in rows for way in ways]
    assert rows
    assert not [text for text in shown if PLANTED in text or PROOF in text]
    assert any(PLANTED in str(dict(row.with_content())) for row in rows)


@pytest.mark.parametrize("kind", [*ROWS][1:], ids=lambda kind: kind.__name__)
def test_content_that_was_handed_out_and_redacted_does_not_come_back(planted, kind):
    row = next(row for row in ROWS[kind](planted.connection) if row.with_content() != row)

    redacted = row.with_content().model_copy(update=dict(row))

    assert PLANTED not in str(dict(redacted.with_content()))


@pytest.mark.parametrize("kind", [*ROWS][1:], ids=lambda kind: kind.__name__)
def test_rows_that_differ_by_content_alone_are_alike(planted, kind):
    row = next(row for row in ROWS[kind](planted.connection) if row.with_content() != row)

    assert kind(**dict(row)) == row


def test_field_that_may_quote_a_sender_is_marked_as_content():
    unmarked = {
        (kind.__name__, name)
        for kind in of_the_ledger(ResponseModel) - {Failure}
        for name, field in kind.model_fields.items()
        if name in SAYS and not any(isinstance(mark, Content) for mark in field.metadata)
    }

    assert unmarked <= NOT_CONTENT


OPENS = {
    "receiver/desk/content.py": "asks the permission",
    "receiver/desk/deliveries.py": "checks a proof",
    "receiver/ledger/withheld.py": "opens the rows in a row",
    "receiver/ledger/replay/bulk.py": "replays what matches",
    "jobs/alerts/watcher.py": "sends an error's text where that is configured",
    "jobs/configured/cli.py": "forwards an event",
    "hookonce/testing/inbox.py": "shows a test its own events",
    "hookonce/testing/waiting.py": "shows a test its own events",
}
"""Modules that take content out of rows, and why each may."""


def test_content_is_taken_out_of_rows_by_few_modules():
    root = Path(hookonce.__file__).parent.parent
    files = [
        file
        for folder in ("receiver", "jobs", "providers", "hookonce")
        for file in (root / folder).rglob("*.py")
    ]

    found = {
        str(file.resolve().relative_to(root))
        for file in files
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Attribute) and node.attr in {"with_content", "_aside"}
    }

    assert found == {*OPENS}
