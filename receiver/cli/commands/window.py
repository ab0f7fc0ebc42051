"""`hookonce window`: the dedup window in Redis."""

from contextlib import suppress

import click
import psycopg

from hookonce.receiver.cli.connections import configured, ledger
from hookonce.receiver.config.settings import require_servers
from hookonce.receiver.ledger.database import connections
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
    has learnt them anew, duplicates are found by the ledger. The ledger makes itself another key, so nothing of before
    is believed, even if somebody puts it back.
    """
    settings = configured()
    require_servers(settings)
    # A ledger that was restored from before there were keys gets its key by `db upgrade`.
    with ledger(settings) as connection, suppress(psycopg.errors.UndefinedColumn):
        connections.renew_window_key(connection)
    try:
        with connect(settings.redis_url) as client:
            count = DedupWindow(client, CircuitBreaker()).forget()
    except RedisUnavailable as error:
        click.echo(
            f"nothing of before is believed any more; Redis does not answer ({error}), so there it runs out by itself",
            err=True,
        )
        return
    click.echo(f"forgot {count} event ids", err=True)
