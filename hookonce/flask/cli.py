"""`flask hookonce …`: the command line, whose `worker` runs handlers inside the application."""

import sys
from functools import partial
from typing import Any

import click
from flask.cli import ScriptInfo, pass_script_info

from hookonce.flask.transactions import FlaskTransactions, require_shared
from hookonce.jobs import cli as worker_cli
from hookonce.jobs.children import keep_lines, suspect_of
from hookonce.jobs.drain import handlers_of
from hookonce.receiver.cli import LazyGroup
from hookonce.receiver.cli.output.exits import exits

_WORKER = "worker"


class FlaskGroup(LazyGroup):
    """The commands of `hookonce`, but for the worker, which is the application's."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command."""
        return worker if cmd_name == _WORKER else super().get_command(ctx, cmd_name)

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401  click's
        """Run a command; known errors become one line and an exit code."""
        with exits():
            return super().invoke(ctx)


@click.group("hookonce", cls=FlaskGroup)
def group() -> None:
    """hookonce: a webhook inbox that keeps every event exactly once."""


@click.command(_WORKER)
@worker_cli.worker_options
@click.option("--suspects", type=int, hidden=True, help="Be the child of this number that runs suspects.")
@pass_script_info
def worker(info: ScriptInfo, /, **options: Any) -> None:  # noqa: ANN401  an option each
    """Run handlers until stopped, inside the application's context, with `db.session` in the run's transaction."""
    settings = worker_cli.ready()
    if options["suspects"] is not None:
        suspect_of(settings, options["suspects"], options["place"])
    if options["alone"] or options["suspects"] is not None:
        keep_lines(settings)
    app = info.load_app()
    require_shared(app, settings.database_url)
    worker_cli.work_by(
        settings,
        handlers_of(settings),
        partial(FlaskTransactions, app=app),
        _itself(info),
        modules=settings.handlers,
        **options,
    )


def _itself(info: ScriptInfo) -> list[str]:
    """Return the command that starts this one, for the same application."""
    app = ["--app", info.app_import_path] if info.app_import_path else []
    return [sys.executable, "-m", "flask", *app, "hookonce", _WORKER]
