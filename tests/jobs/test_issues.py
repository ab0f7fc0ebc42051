from datetime import timedelta

import pytest

from hookonce.jobs.alerts import conditions
from hookonce.jobs.failures.issues import issue_of
from hookonce.jobs.failures.release import release, revision
from hookonce.jobs.failures.traceback_capture import captured
from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.config.settings import load_settings
from hookonce.receiver.ledger.queries.event_filter import Filter
from hookonce.receiver.ledger.replay import bulk
from hookonce.receiver.ledger.runs.ends import AttemptResult
from hookonce.receiver.ledger.stats import issues
from hookonce.receiver.ledger.stats.issues import IssueState
from tests.support import claiming

SHA = "0123456789abcdef0123456789abcdef01234567"


def charge(event, _tx):
    raise ValueError(f"no such customer: {event.event_id}")


def refund(event, _tx):
    charge(event, _tx)


def mail(event, _tx):
    if event.event_id.startswith("a"):
        raise LookupError("here")
    raise LookupError("there")


def failing(function, *arguments):
    try:
        function(*arguments)
    except Exception as error:  # noqa: BLE001  whatever it is
        return issue_of("shop", error, captured(error), "v1")
    raise AssertionError("nothing was raised")


def compiled(source):
    """A function that was loaded from a file with this text."""
    names = {}
    exec(compile(source, "/srv/shop.py", "exec"), names)  # noqa: S102  a test's own text
    return names["run"]


def found(inbox, state=None):
    return [each.with_content() for each in issues.listing(inbox.connection, state)]


def fail_on(inbox, name, *ids, handler=charge):
    """Have events fail on a release, each once."""
    inbox.drains.clear()
    inbox.settings = load_settings(
        {
            "DATABASE_URL": inbox.settings.database_url,
            "REDIS_URL": inbox.settings.redis_url,
            "HOOKONCE_CONFIG": "/dev/null",
            "HOOKONCE_RELEASE": name,
        }
    )
    if not inbox.registry.named(handler.__name__):
        inbox.on(handler, attempts=1)
    inbox.deliver(*ids)
    inbox.work()


def test_failures_at_one_place_are_one_issue_whatever_they_say():
    first, second = (failing(int, text) for text in ("a", "b"))
    line = failing.__code__.co_firstlineno + 2

    assert first.id == second.id
    assert first.title == f"ValueError (tests/jobs/test_issues.py:{line})"


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("def run():\n    1 / 0\n", "\n\n# moved down\ndef run():\n    1 / 0\n", True),
        ("def run():\n    1 / 0\n", "def run():\n    {}[0]\n", False),
        ("def run():\n    raise KeyError(1)\n", "def run():\n    raise KeyError(2)\n", True),
    ],
)
def test_issue_is_the_class_and_the_place_without_its_number(one, other, is_same):
    first, second = (failing(compiled(source)) for source in (one, other))

    assert (first.id == second.id) is is_same


def test_runs_are_grouped_by_handler_and_place(inbox):
    inbox.on(charge, attempts=2)
    inbox.on(mail, attempts=1)
    first, *_ = inbox.deliver("a", "b")

    inbox.work()

    by_handler = {each.handler: each for each in found(inbox)}
    assert len(found(inbox)) == 3
    assert (by_handler["charge"].failures, by_handler["charge"].dead) == (4, 2)
    assert by_handler["charge"].title.startswith("ValueError (tests/jobs/test_issues.py:")
    assert by_handler["charge"].error.startswith("ValueError: no such customer: ")
    assert first in {each.event for each in issues.occurrences(inbox.connection, by_handler["charge"].id, 9)}


def test_run_that_is_done_leaves_no_issue(inbox):
    inbox.on(lambda *_: None)
    inbox.deliver("a")

    inbox.work()

    assert found(inbox) == []


def test_whole_group_is_found_and_replayed_by_its_issue(inbox):
    inbox.on(mail, attempts=1)
    numbers = inbox.deliver("a1", "b1", "a2", "b2")
    inbox.work()
    group = next(each for each in found(inbox) if "LookupError: here" in each.error)

    wanted = Filter(status="dead", issue=group.id)
    started = bulk.start(inbox.connection, wanted, "me")

    assert bulk.counts(inbox.connection, wanted) == [("invoice.paid", "dead", 2)]
    assert (started.matched, started.until_event) == (2, numbers[2])


def test_fixed_issue_opens_itself_on_a_newer_release_only(inbox):
    fail_on(inbox, "v1", "a")
    (issue,) = found(inbox)

    issues.mark(inbox.connection, issue.id, IssueState.FIXED, "me")
    fail_on(inbox, "v1", "b")
    still = issues.get(inbox.connection, issue.id)
    fail_on(inbox, "v2", "c")
    again = issues.get(inbox.connection, issue.id)

    assert (still.state, still.failures, still.reopened_at) == ("fixed", 2, None)
    assert (again.state, again.failures, again.first_release, again.last_release) == ("open", 3, "v1", "v2")
    assert again.reopened_at


def test_ignored_issue_is_open_again_when_its_time_is_over(inbox):
    fail_on(inbox, "v1", "a")
    (issue,) = found(inbox)
    (now,) = inbox.rows("SELECT now()")[0]

    issues.mark(inbox.connection, issue.id, IssueState.IGNORED, "me", now + timedelta(hours=1))
    ignored = found(inbox, IssueState.IGNORED)
    inbox.connection.execute("UPDATE hookonce.issues SET ignored_until = now()")

    assert ([each.id for each in ignored], [each.id for each in found(inbox, IssueState.OPEN)]) == (
        [issue.id],
    ) * 2
    assert inbox.rows("SELECT who, action, subject FROM hookonce.audit") == [
        ("me", "issue ignored", f"issue {issue.id}")
    ]


def test_failure_that_nobody_saw_is_an_issue_by_what_is_said_of_it(inbox):
    inbox.on(charge, attempts=1)
    inbox.deliver("a", "b")
    for run in claiming.claim(inbox.connection, inbox.registry, slots=2).runs:
        claiming.end(inbox.connection, run, AttemptResult("dead", error="the worker stopped"))

    (issue,) = found(inbox)

    assert (issue.handler, issue.title, issue.dead, issue.last_release) == (
        "charge",
        "the worker stopped",
        2,
        None,
    )


def test_issue_goes_with_the_last_of_its_failures(inbox):
    fail_on(inbox, "v1", "a")
    inbox.connection.execute("UPDATE hookonce.issues SET first_seen = now() - interval '2 hours'")
    issues.forget(inbox.connection)
    kept = found(inbox)

    inbox.connection.execute("DELETE FROM hookonce.runs; DELETE FROM hookonce.failures")
    issues.forget(inbox.connection)

    assert (len(kept), found(inbox)) == (1, [])


def test_alert_of_dead_events_names_their_issues_and_quotes_nothing(inbox):
    fail_on(inbox, "v1", "a", "b")
    (issue,) = found(inbox)

    told = conditions._dead(inbox.connection, inbox.settings.alerts.dead_runs, {}, None)  # noqa: SLF001  one of many conditions

    assert f"2 of {issue.title} in charge (issue {issue.id})" in told["dead_runs", "stripe"]
    assert "customer" not in told["dead_runs", "stripe"]


def test_release_is_named_or_the_revision_that_is_checked_out(tmp_path):
    (tmp_path / ".git" / "refs" / "heads").mkdir(parents=True)
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (tmp_path / "shop").mkdir()
    before = revision(tmp_path / "shop")
    (tmp_path / ".git" / "packed-refs").write_text(f"# pack-refs\n{SHA} refs/heads/main\n")
    packed = revision(tmp_path / "shop")
    (tmp_path / ".git" / "refs" / "heads" / "main").write_text(f"{SHA[::-1]}\n")

    assert (before, packed, revision(tmp_path)) == (None, SHA[:12], SHA[::-1][:12])
    assert (release("v1", tmp_path), release("", tmp_path)) == ("v1", SHA[::-1][:12])


def test_revision_of_a_worktree_is_its_own(tmp_path):
    own = tmp_path / "repository" / ".git" / "worktrees" / "shop"
    own.mkdir(parents=True)
    (own / "HEAD").write_text("ref: refs/heads/shop\n")
    (own / "commondir").write_text("../..\n")
    (own.parents[1] / "refs" / "heads").mkdir(parents=True)
    (own.parents[1] / "refs" / "heads" / "shop").write_text(SHA)
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / ".git").write_text(f"gitdir: {own}\n")

    assert revision(tmp_path / "shop") == SHA[:12]


def test_release_without_a_name_is_when_the_worker_started(tmp_path):
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("something else")

    assert release("", tmp_path).startswith("started 20")


def test_release_that_is_no_name_is_a_mistake():
    with pytest.raises(ConfigError, match="HOOKONCE_RELEASE has 101 characters"):
        load_settings({"HOOKONCE_CONFIG": "/dev/null", "HOOKONCE_RELEASE": "v" * 101}, need_secrets=False)
