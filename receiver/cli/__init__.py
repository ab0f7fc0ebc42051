"""The command line. Each command is imported when it is called, not before.

`commands` has one module per command, and in `listings` and `planned` those that `action_command` makes of one action
of the desk;
some have parts of their own: `dev`, `listen`, `doctor`, `replay`, `capture` and `new`.
What commands share: `options` reads what was typed, `output` prints, `event_listing` events, `connections` reaches the
servers, `desk` asks there or by `--at` elsewhere, `plans` shows what would be done, `local_sources` knows what can be
sent to here and `listener` which process answers, `pulled` says how far a pull of events is, and
`signing_sources` whose secrets sign and verify. Ctrl-C is quiet as long as there is `loading`.
"""

from hookonce.receiver.cli import loading

# isort: split
import atexit
import gc
import importlib
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import takewhile
from typing import Any

import click
from click.shell_completion import CompletionItem

from hookonce.receiver.cli.options.examples import examples
from hookonce.receiver.cli.options.repeats import refuse_repeats
from hookonce.receiver.cli.output.exits import Exit, exits

_HERE = "hookonce.receiver.cli.commands"

COMMANDS = {
    "alerts": (f"{_HERE}.alerts:alerts", "List alerts, and send a test alert."),
    "approximate": (f"{_HERE}.approximate:approximate", "Plan sets of ids that may be mistaken."),
    "audit": (f"{_HERE}.listings:audit", "List what people and programs changed, newest first."),
    "capture": (f"{_HERE}.capture:capture", "Print the next delivery of a sender as a .http file."),
    "commands": (f"{_HERE}.listings:commands", "List commands of clients, and what became of each."),
    "consume": (f"{_HERE}.consume:consume", "Take messages of brokers in until stopped."),
    "consumers": (f"{_HERE}.consume:consumers", "List sources that are taken from brokers."),
    "completion": (f"{_HERE}.completion:completion", "Print the completion script of a shell."),
    "db": (f"{_HERE}.db:db", "Upgrade the database schema, or print its revision."),
    "demo": (f"{_HERE}.demo:demo", "Run the whole stack on signed samples, check it, and stop."),
    "deploy": (f"{_HERE}.deploy:deploy", "Write the files that run it: systemd, compose, nginx …"),
    "dev": (f"{_HERE}.dev:dev", "Run the whole stack here until Ctrl-C."),
    "docs": (f"{_HERE}.docs:docs", "Read and search the documents of this version, offline."),
    "doctor": (f"{_HERE}.doctor:doctor", "Check the installation, and print what to fix."),
    "entities": (f"{_HERE}.listings:entities", "Show and forget what was done of an object."),
    "events": (f"{_HERE}.events:events", "List, show, open, export and import events of the ledger."),
    "forwards": ("hookonce.jobs.configured.cli:forwards", "List forwards, and send one event now."),
    "help": (f"{_HERE}.help:help_", "List all commands."),
    "handlers": (f"{_HERE}.handlers:handlers", "List the handlers that workers know."),
    "init": (f"{_HERE}.init:init", "Begin a project: hookonce.toml, handlers.py and .env."),
    "issues": (f"{_HERE}.issues:issues", "List failures by cause, and mark them as fixed or ignored."),
    "keys": (f"{_HERE}.keys:keys", "Make, list and rotate the keys that seal bodies."),
    "explain": (f"{_HERE}.explain:explain", "Verify a captured delivery, and explain why it is rejected."),
    "limits": (f"{_HERE}.listings:limits", "List limits and circuit breakers, and what they hold back."),
    "listen": (f"{_HERE}.listen:listen", "Send another inbox's events to a program here."),
    "login": (f"{_HERE}.login:login", "Store a token for another inbox, for `--at`."),
    "logout": (f"{_HERE}.login:logout", "Delete the token of another inbox."),
    "mcp": (f"{_HERE}.mcp:mcp", "Give an agent access to the inbox (Model Context Protocol)."),
    "new": (f"{_HERE}.new:new", "Start a provider of your own."),
    "pause": (f"{_HERE}.pause:pause", "Pause the runs of a source or a handler."),
    "providers": (f"{_HERE}.sources:providers", "List the senders there is a module for."),
    "prune": (f"{_HERE}.planned:prune", "Delete data past its retention."),
    "reconcile": (
        f"{_HERE}.reconcile:reconcile",
        "Ask a sender what it sent, and have what is missing come.",
    ),
    "rejected": (f"{_HERE}.rejected:rejected", "List deliveries that were rejected, and why."),
    "replay": (f"{_HERE}.replay:replay", "Run events again, or release held ones."),
    "replays": (f"{_HERE}.listings:replays", "List bulk replays, and how far each is."),
    "resume": (f"{_HERE}.pause:resume", "Continue a paused source or handler."),
    "reverify": (
        f"{_HERE}.planned:reverify",
        "Verify quarantined deliveries again, and accept genuine ones.",
    ),
    "serve": (f"{_HERE}.serve:serve", "Receive webhooks (gunicorn)."),
    "sign": (f"{_HERE}.sign:sign", "Sign a body as a sender would: headers, or a curl command."),
    "sources": (f"{_HERE}.sources:sources", "List the configured sources and their URLs."),
    "stats": (f"{_HERE}.stats:stats", "Count events, rejected deliveries, and what waits."),
    "steps": (f"{_HERE}.steps:steps", "List stopped steps of handlers, and decide about them."),
    "sweep": (
        "hookonce.jobs.cli:sweep",
        "Requeue due events whose notification was lost.",
    ),
    "tokens": (f"{_HERE}.tokens:tokens", "Make and revoke tokens for the admin API."),
    "tail": (f"{_HERE}.tail:tail", "Print events as they come, until Ctrl-C."),
    "trigger": (f"{_HERE}.trigger:trigger", "Send a signed sample event, as the sender would."),
    "waits": (f"{_HERE}.listings:waits", "List runs that wait for another event, and end a wait."),
    "workers": (f"{_HERE}.listings:workers", "List workers and what each is running."),
    "worker": ("hookonce.jobs.cli:worker", "Run handlers: RQ workers and a sweep, kept alive."),
}
"""Name → (where it is, one line). The worker's commands are named only: the receiver never imports jobs."""

SHOWN = {
    "Try": ("init", "dev", "trigger"),
    "Build": ("new", "capture"),
    "Look": ("events", "issues", "stats", "doctor"),
    "Fix": ("replay", "pause"),
    "Run": ("serve", "worker", "db", "tokens"),
}
"""The first help: commands by task; `hookonce help` has all."""

FURTHER = {
    "Try": ("demo", "explain", "listen", "sign"),
    "Build": ("completion",),
    "Look": (
        *("alerts", "audit", "commands", "docs", "handlers", "limits"),
        *("providers", "rejected", "replays", "sources", "tail", "workers"),
    ),
    "Fix": ("approximate", "entities", "reconcile", "resume", "reverify", "steps", "waits"),
    "Run": ("consume", "consumers", "deploy", "forwards", "keys", "login", "logout", "mcp", "prune", "sweep"),
}
"""All others, in the same groups: one level down."""

AT_A_DISTANCE = {
    "events",
    "issues",
    "stats",
    "replay",
    "pause",
    "prune",
    "help",
    "trigger",
    *FURTHER["Look"],
    *FURTHER["Fix"],
} - {"reconcile"}
"""Commands that `--at` can send elsewhere: those that ask the desk."""


@contextmanager
def _no_collections() -> Iterator[None]:
    """Keep the collector of cycles out of imports: they make no garbage, and take a tenth longer with it."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


class LazyGroup(click.Group):
    """Lists its commands without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002, D102
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002, D102
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        with _no_collections():
            command = getattr(importlib.import_module(module), attribute)
        loading.ended()
        if not isinstance(command, click.Command):
            raise TypeError(f"{COMMANDS[cmd_name][0]} is not a command")
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:  # noqa: D102
        if not ctx.resilient_parsing:
            refuse_repeats(self, ctx, args)
        return super().parse_args(ctx, args)

    def resolve_command(  # noqa: D102
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if ctx.params.get("at") and name in COMMANDS and name not in AT_A_DISTANCE:
            there = ", ".join(sorted(AT_A_DISTANCE - {"help"}))
            ctx.fail(f"'{name}' is for the machine that it runs on; with --at there are {there}")
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:  # noqa: D102
        names = [
            CompletionItem(name, help=line)
            for name, (_, line) in sorted(COMMANDS.items())
            if name.startswith(incomplete)
        ]
        return names + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002, D102
        write_groups(formatter, SHOWN)
        formatter.write_paragraph()
        formatter.write_text(f"`hookonce help` lists all {len(COMMANDS)} commands.")


def write_groups(formatter: click.HelpFormatter, groups: Mapping[str, Sequence[str]]) -> None:
    """Write commands by what people come for, a line each."""
    widest = max(len(name) for names in groups.values() for name in names)
    for title, names in groups.items():
        with formatter.section(title):
            formatter.write_dl([(f"{name:<{widest}}", COMMANDS[name][1]) for name in names])


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=examples(
        "hookonce init stripe && hookonce dev",
        "hookonce trigger stripe invoice.paid",
        "hookonce events list --status dead",
        "hookonce replay --status dead --since 2h",
    ),
)
@click.version_option(package_name="hookonce")
@click.option("--at", metavar="URL|NAME", help="Ask another inbox, after `hookonce login`.")
def cli(at: str | None) -> None:
    """hookonce: a webhook inbox that keeps every event exactly once."""
    if at:
        from hookonce.receiver.cli.connections import ask_at

        ask_at(at)


def main() -> Any:  # noqa: ANN401  never returns
    """Run the command line; known errors become one line on stderr and a documented exit code."""
    atexit.register(gc.freeze)  # or Python's end looks through all that was imported, which takes 80 ms
    with exits():
        if os.path.exists(".env") or "HOOKONCE_DOTENV" in os.environ:  # noqa: PTH110  pathlib takes time at the start
            from hookonce.receiver.config import dotenv_file

            dotenv_file.load()
        color = False if os.environ.get("NO_COLOR") else None
        with ExitStack() as stack:
            if {"-h", "--help"} & {*takewhile("--".__ne__, sys.argv)}:
                from hookonce.receiver.cli.output.printing import paged

                stack.enter_context(paged())
            cli.main(prog_name="hookonce", standalone_mode=False, color=color)
    sys.exit(Exit.OK)
