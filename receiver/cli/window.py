"""`hookonce window`: the dedup window in Redis."""

import click
import redis

from receiver.breaker import Breaker
from receiver.cli.servers import configured
from receiver.settings import require_servers
from receiver.window import Window, connect


@click.group()
def window() -> None:
    """Look after the dedup window."""


@window.command()
def forget() -> None:
    """Forget every event id in Redis.

    For after a restore of the database, whose ledger may hold less than before. Loses nothing: until the window
    has learnt them anew, duplicates are found by the ledger.
    """
    settings = configured()
    require_servers(settings, postgresql=False)
    try:
        with connect(settings.redis_url) as client:
            count = Window(client, Breaker()).forget()
    except (redis.RedisError, OSError) as error:
        raise click.ClickException(
            f"Redis does not answer ({type(error).__name__}); try again when it does, or flush it yourself"
        ) from None
    click.echo(f"forgot {count} event ids", err=True)
