"""`hookonce db`: the schema."""

import click

from receiver import engines, migrate
from receiver.cli.servers import configured
from receiver.settings import require_servers


def database_url() -> str:
    """Give the configured PostgreSQL URL. Raises `ConfigError` if there is none."""
    settings = configured()
    require_servers(settings, redis=False)
    return settings.database_url


@click.group()
def db() -> None:
    """Bring the database schema up to date, or say where it is."""


@db.command()
def upgrade() -> None:
    """Run the missing migrations and make the coming partitions. Safe to run from many machines."""
    click.echo(f"the schema is at {migrate.upgrade(database_url())}", err=True)


@db.command()
def current() -> None:
    """Print the schema's revision; `none` before the first upgrade."""
    engine = engines.engine(database_url())
    with engine.connect() as connection:
        click.echo(migrate.current(connection) or "none")
