"""`hookonce issues`: what fails, by handler and place, and what has become of it."""

from datetime import UTC, datetime

import click

from hookonce.receiver.cli.desk import asking, desk
from hookonce.receiver.cli.options.event_options import AS_JSON
from hookonce.receiver.cli.options.examples import examples
from hookonce.receiver.cli.output.printing import tell
from hookonce.receiver.cli.output.tables import clean, print_json, show
from hookonce.receiver.cli.output.times import ago
from hookonce.receiver.cli.output.words import counted
from hookonce.receiver.config.durations import parse_duration
from hookonce.receiver.desk.issues import (
    FullIssue,
    Issue,
    IssueMark,
    IssuePath,
    IssuesQuery,
    get_issue,
    list_issues,
    mark_issue,
)

_ISSUE = click.argument("issue")


@click.group(
    epilog=examples(
        "hookonce issues list",
        "hookonce replay --status dead --issue 1f0c2a9be477",
        "hookonce issues ignore 1f0c2a9be477 --for 7d",
    )
)
def issues() -> None:
    """See what fails: failures of one handler at one place of your code are one issue.

    Fixed, it opens itself when it comes again on a newer release (HOOKONCE_RELEASE, or the git revision).
    """


@issues.command("list")
@click.option(
    "--state",
    default="open",
    show_default=True,
    type=click.Choice(("open", "fixed", "ignored", "all")),
    help="Only in this state.",
)
@click.option("--handler", help="Only of this handler.")
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1, 200), help="At most so many.")
@AS_JSON
def list_(state: str, handler: str | None, limit: int, *, as_json: bool) -> None:
    """List issues, those that failed last first."""
    with desk() as here:
        found = here.ask(list_issues, asked=asking(IssuesQuery, state=state, handler=handler, limit=limit))
    if as_json:
        for each in found.data:
            print_json(each.model_dump())
        return
    show(
        ("issue", "handler", "error", "dead", "failures", "first seen", "last seen", "release"),
        [_row(each) for each in found.data],
        empty="no issue is open" if state == "open" else "there is no such issue",
    )
    if not found.is_complete:
        tell(f"the {limit} that failed last")


@issues.command("show")
@_ISSUE
@AS_JSON
def show_(issue: str, *, as_json: bool) -> None:
    """Show an issue, and its newest failures."""
    with desk() as here:
        found = here.ask(get_issue, which=asking(IssuePath, issue=issue))
    _print(found, as_json=as_json)


@issues.command("fix")
@_ISSUE
@AS_JSON
def fix(issue: str, *, as_json: bool) -> None:
    """Say that an issue is fixed.

    It opens itself when a newer release fails so again.
    """
    _mark(issue, as_json=as_json, state="fixed")


@issues.command("ignore")
@_ISSUE
@click.option("--for", "span", default="7d", show_default=True, help="For so long: 12h, 7d, 4w.")
@AS_JSON
def ignore(issue: str, span: str, *, as_json: bool) -> None:
    """Ignore an issue for some time. Its runs fail and die as before."""
    try:
        until = datetime.now(UTC) + parse_duration(span)
    except (ValueError, OverflowError) as error:
        raise click.UsageError(f"--for: {error}") from None
    _mark(issue, as_json=as_json, state="ignored", until=until)


@issues.command("reopen")
@_ISSUE
@AS_JSON
def reopen(issue: str, *, as_json: bool) -> None:
    """Open an issue that was fixed or ignored."""
    _mark(issue, as_json=as_json, state="open")


def _mark(issue: str, *, as_json: bool, **marked: object) -> None:
    with desk() as here:
        found = here.ask(mark_issue, which=asking(IssuePath, issue=issue), asked=asking(IssueMark, **marked))
    _print(found, as_json=as_json)


def _row(each: Issue) -> list[object]:
    seen = (ago(each.first_seen), ago(each.last_seen))
    return [each.id, each.handler, each.title, each.dead, each.failures, *seen, each.last_release]


def _print(found: FullIssue, *, as_json: bool) -> None:
    if as_json:
        print_json(found.model_dump())
        return
    state = (
        f"{found.state} until {found.ignored_until:%Y-%m-%d %H:%M} UTC"
        if found.state == "ignored"
        else found.state
    )
    click.echo(f"{click.style(found.id, bold=True)}  {state}  {clean(found.handler)}")
    click.echo(click.style(clean(found.title), fg="red"))
    click.echo(f"first seen  {ago(found.first_seen)}, {clean(found.first_release or 'an unknown release')}")
    click.echo(f"last seen   {ago(found.last_seen)}, {clean(found.last_release or 'an unknown release')}")
    click.echo(f"failed      {counted(found.failures, 'attempt')}, {found.dead} dead")
    show(
        ("event", "attempt", "failed", "release"),
        [(each.event, each.attempt, ago(each.failed_at), each.release) for each in found.occurrences],
        empty="no failure of it is kept",
    )
    if found.dead:
        click.echo(f"replay all: hookonce replay --status dead --issue {found.id}")
