"""`hookonce db`: the schema."""

import click

from receiver import database, migrate
from receiver.settings import ConfigError, load_settings


def database_url() -> str:
    """Give the configured PostgreSQL URL. Raises `ConfigError` if there is none."""
    url = load_settings(need_secrets=False).database_url
    if not url:
        raise ConfigError(
            ["no PostgreSQL to use; set DATABASE_URL, or start `hookonce dev` in this directory"]
        )
    return url


@click.group()
def db() -> None:
    """Bring the database schema up to date, or say where it is."""


@db.command()
def upgrade() -> None:
    """Run the missing migrations and make the coming days' partitions (safe to run from many machines)."""
    click.echo(f"the schema is at {migrate.upgrade(database_url())}", err=True)


@db.command()
def current() -> None:
    """Print the schema's revision; `none` before the first upgrade."""
    engine = database.engine(database_url())
    with engine.connect() as connection:
        click.echo(migrate.current(connection) or "none")
