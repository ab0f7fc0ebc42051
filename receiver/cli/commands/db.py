"""`hookonce db`: the schema."""

import click
import psycopg

from hookonce.receiver.cli.connections import here
from hookonce.receiver.cli.options.examples import examples
from hookonce.receiver.cli.output.printing import tell
from hookonce.receiver.cli.output.tables import clean
from hookonce.receiver.config.server_urls import libpq_url, schema_of
from hookonce.receiver.config.servers import ledger_schema, ledger_url
from hookonce.receiver.ledger.database import connections, migrate, roles
from hookonce.receiver.ledger.database.roles import Task
from hookonce.receiver.monitoring import rights

GRANT_AGAIN = (
    "the ledger has tables on which no role was given a right since; run `hookonce db roles` again for those that were"
    " given some: {}"
)


@click.group()
def db() -> None:
    """Bring the database schema up to date, or say where it is."""


@db.command()
def url() -> None:
    """Print the URL of the database, with its password. For programs that share it."""
    click.echo(libpq_url(ledger_url()))


@db.command()
def upgrade() -> None:
    """Run the missing migrations and make the coming partitions. Safe to run from many machines.

    Receivers and workers of the version before go on meanwhile and afterwards.
    """
    url = here()
    tell(f"the schema is at {migrate.upgrade(url)}")
    with connections.connect(url) as connection:
        warnings = [rights.search_path(connection, schema_of(url))]
        if behind := roles.behind(connection):
            warnings.append(GRANT_AGAIN.format(", ".join(behind)))
    for warning in filter(None, warnings):
        tell(f"hookonce: {warning}")


@db.command()
def current() -> None:
    """Print the schema's revision; `none` before the first upgrade."""
    click.echo(migrate.current(here()) or "none")


@db.command(
    "roles",
    epilog=examples(
        "hookonce db roles --receiver inbox_in --worker inbox_work --desk inbox_desk | psql",
        "hookonce db roles --receiver inbox_in --worker inbox_work --desk inbox_in --apply",
    ),
)
@click.option("--receiver", metavar="ROLE", help="role of `hookonce serve`, which takes deliveries in")
@click.option("--worker", metavar="ROLE", help="role of `hookonce worker`, which runs handlers")
@click.option("--desk", metavar="ROLE", help="role of commands, the API and the console")
@click.option("--django", metavar="ROLE", help="role of Django's own connection, if its worker ends runs")
@click.option("--reader", metavar="ROLE", help="role that reads states and figures by SQL, and no content")
@click.option("--upgrade", metavar="ROLE", help="role that owns the ledger and runs `hookonce db upgrade`")
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
    if applies:
        try:
            with connections.connect(here()) as connection:
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
    for statement in roles.statements(given, ledger_schema(), upgrade):
        click.echo(f"{statement};")
    click.echo("COMMIT;")
