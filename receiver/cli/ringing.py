"""Rings the bell for a command; what `receiver.cli.servers` calls, apart because few commands need Redis."""

import click
import redis

from receiver.handoff import Bell
from receiver.window import connect


def ring(url: str) -> None:
    """Tell the workers that something is due, or the operator why they were not told."""
    try:
        with connect(url) as client:
            Bell(client).ring_if_quiet()
    except (redis.RedisError, OSError) as error:
        click.echo(f"the bell can't be rung ({type(error).__name__}); the sweep finds what is due", err=True)
