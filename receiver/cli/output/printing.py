"""Lines that a command prints while it goes on."""

import os
import time

import click


def say(text: str) -> None:
    """Print a line of our own, with the time."""
    echo(f"{time.strftime('%H:%M:%S')}  {text}")


def echo(text: str, *, err: bool = False) -> None:
    """Print in colour where a terminal shows it, and nobody asked for none (https://no-color.org)."""
    click.echo(text, err=err, color=False if os.environ.get("NO_COLOR") else None)
