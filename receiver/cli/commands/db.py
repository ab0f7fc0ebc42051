"""`hookonce db`: the schema."""

import click

from hookonce.receiver.cli.connections import configured
from hookonce.receiver.config.server_urls import libpq_url, schema_of
from hookonce.receiver.config.servers import NO_POSTGRESQL, ConfigError, ledger_url
from hookonce.receiver.config.settings import require_servers
from hookonce.receiver.ledger.database import connections, engines, migrate
from hookonce.receiver.monitoring import rights


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
def upgrade() -> None:
    """Run the missing migrations and make the coming partitions. Safe to run from many machines."""
    url = database_url()
    click.echo(f"the schema is at {migrate.upgrade(url)}", err=True)
    with connections.connect(url) as connection:
        warning = rights.search_path(connection, schema_of(url))
    if warning:
        click.echo(f"hookonce: {warning}", err=True)


@db.command()
def current() -> None:
    """Print the schema's revision; `none` before the first upgrade."""
    url = database_url()
    with engines.engine(url).connect() as connection:
        click.echo(migrate.current(connection, schema_of(url)) or "none")
