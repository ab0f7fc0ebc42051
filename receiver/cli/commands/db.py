"""`hookonce db`: the schema."""

import click
import psycopg

from hookonce.receiver.cli.connections import configured
from hookonce.receiver.cli.options.examples import examples
from hookonce.receiver.cli.output.printing import tell
from hookonce.receiver.cli.output.tables import clean
from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.config.server_urls import libpq_url, schema_of
from hookonce.receiver.config.servers import NO_POSTGRESQL, ledger_url
from hookonce.receiver.config.settings import require_servers
from hookonce.receiver.ledger.database import connections, engines, live_upgrade, migrate, roles, upgrade_plan
from hookonce.receiver.ledger.database.roles import Task
from hookonce.receiver.monitoring import rights

GRANT_AGAIN = (
    "the ledger has tables on which no role was given a right since; run `hookonce db roles` again for those that were"
    " given some: {}"
)


def database_url() -> str:
    """Return the configured PostgreSQL URL. Raises `ConfigError` if there is none."""
    settings = configured()
    require_servers(settings, redis=False)
    return settings.database_url


@click.group()
def db() -> None:
    """Bring the database schema up to date, or say where it is."""


@db.command()
def url() -> None:
    """Print the URL of the database, with its password. For programs that share it."""
    found = ledger_url()
    if not found:
        raise ConfigError([NO_POSTGRESQL])
    click.echo(libpq_url(found))


@db.command()
@click.option(
    "--plan", "only_plan", is_flag=True, help="Say what it would do and what that locks; change nothing."
)
@click.option(
    "--finish",
    is_flag=True,
    help="Drop what is kept for processes of the version before, whoever is connected.",
)
def upgrade(*, only_plan: bool, finish: bool) -> None:
    """Run the missing migrations and make the coming partitions. Safe to run from many machines.

    Receivers of the version before go on meanwhile and afterwards; workers of before until the new tables are in place.
    """
    url = database_url()
    if only_plan:
        _tell(upgrade_plan.plan(url))
        return
    tell(f"the schema is at {migrate.upgrade(url, say=_Said(), finish=finish)}")
    with connections.connect(url) as connection:
        warnings = [rights.search_path(connection, schema_of(url))]
        if behind := roles.behind(connection):
            warnings.append(GRANT_AGAIN.format(", ".join(behind)))
    for warning in filter(None, warnings):
        tell(f"hookonce: {warning}")


def _tell(plan: upgrade_plan.UpgradePlan) -> None:
    if plan.revision is None:
        click.echo(f"there is no ledger yet; an upgrade would make it, at revision {plan.reached}")
    else:
        click.echo(f"the schema is at {plan.revision}; an upgrade would bring it to {plan.reached}")
    for number, step in enumerate(plan.steps, 1):
        click.echo(f"{number}. {step.does}\n   locks: {step.locks}")
    if not plan.steps:
        click.echo("nothing to do but the partitions of the coming days")


class _Said:
    """Says how far an upgrade has come: each step, and of a copy each tenth."""

    def __init__(self) -> None:
        self._last = ""

    def __call__(self, progress: live_upgrade.Progress) -> None:
        if progress.step == "copy":
            tenth = 10 * progress.copied // progress.of * 10 if progress.of else 100
            said = f"copied: {tenth} %"
        else:
            said = _WORDS[progress.step].format(why=progress.why)
        if said != self._last:
            tell(said)
        self._last = said


_WORDS = {
    "expand": "making the new tables",
    "swap": "waiting for runs under way, then putting the new tables in place",
    "contract": "dropping what was kept for the version before",
    "postponed": "what is kept for processes of the version before stays: {why}; run it again when they have ended",
}


@db.command()
def current() -> None:
    """Print the schema's revision; `none` before the first upgrade."""
    url = database_url()
    with engines.engine(url).connect() as connection:
        click.echo(migrate.current(connection, schema_of(url)) or "none")


@db.command(
    "roles",
    epilog=examples(
        "hookonce db roles --receiver inbox_in --worker inbox_work --desk inbox_desk | psql",
        "hookonce db roles --receiver inbox_in --worker inbox_work --desk inbox_in --apply",
    ),
)
@click.option("--receiver", metavar="ROLE", help="who takes deliveries in: `hookonce serve`")
@click.option("--worker", metavar="ROLE", help="who runs handlers and looks after the ledger")
@click.option("--desk", metavar="ROLE", help="who commands, the API and the dashboard are")
@click.option("--django", metavar="ROLE", help="who Django is connected as, where its worker ends runs")
@click.option("--upgrade", metavar="ROLE", help="who is to own the ledger, and to run `hookonce db upgrade`")
@click.option(
    "--apply", "applies", is_flag=True, help="run the SQL as the role in DATABASE_URL, and print none"
)
def roles_command(upgrade: str | None, *, applies: bool, **named: str | None) -> None:
    """Print the SQL that gives each role the rights it needs.

    The roles must be there; one may be named for several. It is one transaction, and can be run again: after
    `hookonce db upgrade`, whose tables nobody else has a right on.
    """
    given = {task: name for task in Task if (name := named[task])}
    if not given and not upgrade:
        raise click.UsageError("name at least one role, such as --worker inbox_work")
    settings = configured()
    if applies:
        require_servers(settings, redis=False)
        try:
            with connections.connect(settings.database_url) as connection:
                roles.apply(connection, given, upgrade)
        except psycopg.errors.UndefinedObject as error:
            raise click.ClickException(
                f"{error.diag.message_primary}, so no right was given; make it with CREATE ROLE first"
            ) from None
        for name in dict.fromkeys(filter(None, (*given.values(), upgrade))):
            tasks = [task.value for task in given if given[task] == name] + ["upgrade"] * (name == upgrade)
            tell(f"role {clean(name)} has its rights: {', '.join(tasks)}")
        return
    click.echo("BEGIN;")
    for statement in roles.statements(given, schema_of(settings.database_url), upgrade):
        click.echo(f"{statement};")
    click.echo("COMMIT;")
