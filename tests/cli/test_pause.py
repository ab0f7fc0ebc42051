from datetime import timedelta

import pytest

from hookonce.receiver.ledger.handlers import register_handlers

pytestmark = pytest.mark.usefixtures("inbox")


@pytest.fixture
def paused(ledger):
    return lambda: ledger.execute("SELECT kind, name FROM hookonce.pauses").fetchall()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["stripe"], ("source", "stripe")),
        (["app.credit"], ("handler", "app.credit")),
        (["credit"], ("handler", "credit")),
        (["app.never_ran"], ("handler", "app.never_ran")),
        (["stripe", "--kind", "handler"], ("handler", "stripe")),
        (["stripe:invoice.*"], ("type", "stripe:invoice.*")),
        (["stripe:*", "--kind", "type"], ("type", "stripe:*")),
    ],
)
def test_pause_tells_sources_from_handlers(hookonce, stored, paused, arguments, expected):
    stored("evt_1", runs=[("app.credit", "done", 1), ("credit", "done", 1)])

    assert hookonce("pause", *arguments).code == 0

    assert paused() == [expected]


def test_pause_doubts_a_handler_that_never_ran(hookonce, stored):
    stored("evt_1", runs=[("app.credit", "done", 1)])

    tried = hookonce("pause", "books.refund")

    assert tried.code == 0
    assert (
        "no worker has registered handler books.refund, and it has not run; it is paused by this name"
        in tried.err
    )


def test_pause_of_what_looks_like_a_typo_is_refused_unless_it_is_said_to_be_a_handler(
    hookonce, stored, paused
):
    stored("evt_1", runs=[("app.credit", "done", 1)])

    tried = hookonce("pause", "app.credt")
    before = paused()
    insisted = hookonce("pause", "app.credt", "--kind", "handler")

    assert (tried.code, before) == (4, [])
    assert "did you mean 'app.credit'?" in tried.err
    assert (insisted.code, paused()) == (0, [("handler", "app.credt")])


@pytest.mark.parametrize("kind", [[], ["--kind", "type"]])
def test_pause_of_a_type_at_an_unknown_source_is_refused(hookonce, paused, kind):
    tried = hookonce("pause", "strip:invoice.*", *kind)

    assert (tried.code, paused()) == (4, [])
    assert "no source is called 'strip'; did you mean 'stripe'?" in tried.err


def test_pause_knows_a_handler_that_a_worker_has_named(hookonce, ledger, paused):
    register_handlers(ledger, [("credit", "stripe", "*", 3, timedelta(seconds=30), None)])

    assert hookonce("pause", "credit").code == 0
    assert paused() == [("handler", "credit")]


@pytest.mark.parametrize("arguments", [["strip"], ["credi"], ["app.credit", "--kind", "source"]])
def test_pause_refuses_a_name_that_nobody_has(hookonce, stored, paused, arguments):
    stored("evt_1", runs=[("credit", "done", 1)])

    tried = hookonce("pause", *arguments)

    assert (tried.code, paused()) == (4, [])
    assert "did you mean" in tried.err or "there is " in tried.err


def test_resume_finds_the_kind_of_what_is_paused_and_rings(hookonce, stored, paused, rings):
    stored("evt_1", status="waiting", runs=[("credit", "waiting", 0)])
    hookonce("pause", "credit")

    resumed = hookonce("resume", "credit")

    assert (resumed.code, paused(), rings()) == (0, [], 1)
