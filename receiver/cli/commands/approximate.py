"""`hookonce approximate`: ids of which a few may be mistaken; what they cost, and how full they are."""

from dataclasses import replace
from datetime import timedelta

import click

from hookonce.receiver.cli.connections import configured
from hookonce.receiver.cli.options.event_options import AS_JSON
from hookonce.receiver.cli.options.time_option import SPAN
from hookonce.receiver.cli.output.tables import listed, print_json


@click.group()
def approximate() -> None:
    """Plan and watch sets of ids of which a few may be mistaken."""


@approximate.command()
@click.option("--keep", type=SPAN, default="1h", show_default=True, help="How long an id is known.")
@click.option(
    "--most", type=click.IntRange(min=1), required=True, help="Ids that come in that time, at most."
)
@click.option(
    "--one-in",
    type=click.IntRange(min=1),
    default=1000,
    show_default=True,
    help="New ids of which one may be taken for known.",
)
@click.option("--exact", is_flag=True, help="Keep digests of all ids, and mistake none.")
@AS_JSON
def plan(keep: timedelta, most: int, one_in: int, *, exact: bool, as_json: bool) -> None:
    """Print the memory that a set needs in Redis."""
    from hookonce.receiver.redis.approximate import SPANS, Shape

    try:
        shape = Shape(keep, most, one_in, exact)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if as_json:
        print_json({"memory": shape.memory, "bits": shape.bits, "hashes": shape.hashes, "spans": SPANS})
        return
    how = (
        "sets of digests"
        if exact
        else f"Bloom filters of {shape.bits:,} bits, {shape.hashes} of them for each id"
    )
    click.echo(f"{shape.memory / 1e6:,.1f} MB of Redis at most: {SPANS} {how}")
    if not exact:
        other = replace(shape, exact=True).memory / 1e6
        click.echo(
            f"full, one new id in {one_in:,} is taken for known; with --exact none is, for {other:,.1f} MB"
        )


@approximate.command("list")
@AS_JSON
def list_(*, as_json: bool) -> None:
    """List the sets that were used lately, and how full each is."""
    from hookonce.receiver.redis.approximate import Figures, figures
    from hookonce.receiver.redis.client import RedisUnavailable, connect

    try:
        with connect(configured().window_url) as client:
            found = [each._replace(wrong=round(each.wrong, 3)) for each in figures(client)]
    except RedisUnavailable as error:
        raise click.ClickException(
            f"Redis does not answer ({error}); start it, or correct REDIS_URL"
        ) from None
    empty = "nothing approximate was used lately; see hookonce.approximate"
    listed(Figures._fields, found, empty, as_json=as_json)
