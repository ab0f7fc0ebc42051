"""The command line. Each command lives in a module of its own and is imported when called, not before."""

import importlib
import os
import sys
from difflib import get_close_matches
from typing import Any

import click
from click.shell_completion import CompletionItem

from receiver.cli.exits import Exit, exits

COMMANDS = {
    "alerts": ("receiver.cli.alerts:alerts", "See what is wrong, and try whether alerts arrive."),
    "capture": ("receiver.cli.capture:capture", "Print the next delivery of a sender as a .http file."),
    "completion": ("receiver.cli.completion:completion", "Print the completion script of a shell."),
    "conflicts": ("receiver.cli.rejected:conflicts", "List events that came with two bodies under one id."),
    "db": ("receiver.cli.db:db", "Bring the database schema up to date."),
    "demo": ("receiver.cli.demo:demo", "Run the whole stack on signed samples, check it, and stop."),
    "dev": ("receiver.cli.dev:dev", "Run the whole stack here until Ctrl-C."),
    "doctor": ("receiver.cli.doctor:doctor", "Check everything, and say what to do."),
    "events": ("receiver.cli.events:events", "List, show, export and import the events of the ledger."),
    "keys": ("receiver.cli.keys:keys", "Make, list and rotate the keys that seal bodies."),
    "exits": ("receiver.cli.man:exits", "List the exit codes and what they mean."),
    "explain": ("receiver.cli.explain:explain", "Say why a captured delivery is refused, check by check."),
    "man": ("receiver.cli.man:man", "Write the manual pages."),
    "new": ("receiver.cli.new:new", "Start a provider of your own."),
    "pause": ("receiver.cli.pause:pause", "Let the runs of a source or handler wait."),
    "providers": ("receiver.cli.sources:providers", "List the senders there is a module for."),
    "prune": ("receiver.cli.prune:prune", "Let go of what has outlived its horizon."),
    "quarantine": ("receiver.cli.quarantine:quarantine", "Say which refused deliveries are kept whole."),
    "rejected": ("receiver.cli.rejected:rejected", "List deliveries that were refused, and why."),
    "replay": ("receiver.cli.replay:replay", "Run events again, or release held ones."),
    "resume": ("receiver.cli.pause:resume", "Go on with a paused source or handler."),
    "reverify": ("receiver.cli.quarantine:reverify", "Take in what was refused and is genuine after all."),
    "secrets": ("receiver.cli.secrets:secrets", "See and forget secrets that senders handed out."),
    "serve": ("receiver.cli.serve:serve", "Receive webhooks (gunicorn)."),
    "sign": ("receiver.cli.sign:sign", "Sign a body as a sender would: headers, or a curl command."),
    "sources": ("receiver.cli.sources:sources", "List the configured sources and their URLs."),
    "stats": ("receiver.cli.stats:stats", "Count events, refused deliveries, and what waits."),
    "sweep": ("jobs.cli:sweep", "Find due events that nobody was told about, and ring for them."),
    "tokens": ("receiver.cli.tokens:tokens", "Make and revoke tokens for the admin API."),
    "tail": ("receiver.cli.tail:tail", "Print events as they come, until Ctrl-C."),
    "trigger": ("receiver.cli.trigger:trigger", "Send a signed sample event, as the sender would."),
    "verify": ("receiver.cli.explain:verify", "Verify a captured delivery, and list its events."),
    "window": ("receiver.cli.window:window", "Look after the dedup window."),
    "worker": ("jobs.cli:worker", "Run handlers: RQ workers and a sweep, kept alive."),
}
"""Name → (where it is, one line). The worker's commands are named only: the receiver never imports jobs."""


class LazyGroup(click.Group):
    """Lists its commands without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002, D102
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002, D102
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        command = getattr(importlib.import_module(module), attribute)
        if not isinstance(command, click.Command):
            raise TypeError(f"{COMMANDS[cmd_name][0]} is not a command")
        return command

    def resolve_command(  # noqa: D102
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        close = [] if name in COMMANDS else get_close_matches(name, COMMANDS, n=1)
        if close:
            ctx.fail(f"no command is called '{name}'; did you mean '{close[0]}'?")
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:  # noqa: D102
        names = [
            CompletionItem(name, help=line)
            for name, (_, line) in sorted(COMMANDS.items())
            if name.startswith(incomplete)
        ]
        return names + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002, D102
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in sorted(COMMANDS.items())])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="hookonce")
def cli() -> None:
    """hookonce: a webhook inbox that keeps every event exactly once."""


def main() -> Any:  # noqa: ANN401  never returns
    """Run the command line; known errors become one line on stderr and a documented exit code."""
    with exits():
        color = False if os.environ.get("NO_COLOR") else None
        cli.main(prog_name="hookonce", standalone_mode=False, color=color)
    sys.exit(Exit.OK)
