"""`hookonce window`: the dedup window in Redis."""

import click

from hookonce.receiver.cli.connections import configured
from hookonce.receiver.config.settings import require_servers
from hookonce.receiver.redis.circuit_breaker import CircuitBreaker
from hookonce.receiver.redis.client import RedisUnavailable, connect
from hookonce.receiver.redis.dedup_window import DedupWindow


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
            count = DedupWindow(client, CircuitBreaker()).forget()
    except RedisUnavailable as error:
        raise click.ClickException(
            f"Redis does not answer ({error}); try again when it does, or flush it yourself"
        ) from None
    click.echo(f"forgot {count} event ids", err=True)
