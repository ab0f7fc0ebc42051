"""`hookonce issues`: what fails, by handler and place, and what has become of it."""

import click

from hookonce.receiver.cli.action_command import listing, shown
from hookonce.receiver.cli.options.examples import examples
from hookonce.receiver.cli.options.time_option import SPAN, from_now
from hookonce.receiver.cli.output import tracebacks
from hookonce.receiver.cli.output.event_lines import cut
from hookonce.receiver.cli.output.tables import clean, show
from hookonce.receiver.cli.output.times import ago
from hookonce.receiver.cli.output.words import counted
from hookonce.receiver.desk.issues import FullIssue, get_issue, list_issues, mark_issue


def _show(found: FullIssue) -> None:
    state = (
        f"{found.state} until {found.ignored_until:%Y-%m-%d %H:%M} UTC"
        if found.state == "ignored"
        else found.state
    )
    click.echo(f"{click.style(found.id, bold=True)}  {state}  {clean(found.handler)}")
    click.echo(cut(clean(found.title), fg="red"))
    if found.latest:
        click.echo(cut(clean(found.latest.said.strip().partition("\n")[0]), fg="red", bold=True))
        for line in tracebacks.place(found.latest.frames):
            click.echo(line)
    click.echo(f"first seen  {ago(found.first_seen)}, {clean(found.first_release or 'an unknown release')}")
    click.echo(f"last seen   {ago(found.last_seen)}, {clean(found.last_release or 'an unknown release')}")
    click.echo(f"failed      {counted(found.failures, 'attempt')}, {found.dead} dead")
    show(
        ("event", "attempt", "failed", "release"),
        [(each.event, each.attempt, ago(each.failed_at), each.release) for each in found.occurrences],
        empty="no failure of it is kept",
    )
    if found.dead:
        click.echo(f"replay all:  hookonce replay --status dead --issue {found.id}")
        click.echo(f"discard all: hookonce events discard --status dead --issue {found.id}")


issues = click.Group(
    commands=[
        listing(
            list_issues,
            {
                "issue": "id",
                "error": "title",
                "handler": "handler",
                "release": "last_release",
                "dead": "dead",
                "failed": "failures",
                "last": lambda issue: ago(issue.last_seen),
                "first": lambda issue: ago(issue.first_seen),
            },
            "no issue matches; --state all includes those that are fixed",
            cut="the {limit} that failed last",
            name="list",
            about="List issues, those that failed last first.",
        ),
        shown(get_issue, _show, name="show", about="Show an issue, and its newest failures."),
        shown(
            mark_issue,
            _show,
            preset={"state": "fixed", "until": None},
            name="fix",
            about="Mark an issue as fixed.\n\nIt opens itself when a newer release fails so again.",
        ),
        shown(
            mark_issue,
            _show,
            preset={"state": "ignored"},
            name="ignore",
            about="Ignore an issue for some time. Its runs fail and die as before.",
            instead={
                "until": click.Option(
                    ["--for", "until"],
                    default="7d",
                    show_default=True,
                    type=SPAN,
                    callback=from_now,
                    help="For so long: 12h, 7d, 4w.",
                )
            },
        ),
        shown(
            mark_issue,
            _show,
            preset={"state": "open", "until": None, "discard": False},
            name="reopen",
            about="Open an issue that was fixed or ignored.",
        ),
    ],
    help="""List what fails: failures of one handler at one place of your code are one issue.

    Fixed, it opens itself when it comes again on a newer release (HOOKONCE_RELEASE, or the git revision).
    """,
    epilog=examples(
        "hookonce issues list",
        "hookonce replay --status dead --issue 1f0c2a9be477",
        "hookonce issues ignore 1f0c2a9be477 --for 7d",
    ),
)
