"""`hookonce entities`: what handlers with stale= have done of an object of a sender's."""

import click

from hookonce.receiver.cli.desk import asking, desk
from hookonce.receiver.cli.options.event_options import AS_JSON
from hookonce.receiver.cli.output.printing import tell
from hookonce.receiver.cli.output.tables import clean, print_json, show
from hookonce.receiver.desk.entities import EntityPath, forget_entity, get_entity

_SOURCE = click.argument("source")
_ENTITY = click.argument("entity")


@click.group()
def entities() -> None:
    """Show and forget the newest versions that handlers (stale=) have done."""


@entities.command("show")
@_SOURCE
@_ENTITY
@AS_JSON
def show_(source: str, entity: str, *, as_json: bool) -> None:
    """Show the newest version of ENTITY for each handler.

    ENTITY is written as `event.subject` has it, for example customer:cus_123.
    """
    with desk() as here:
        found = here.ask(get_entity, which=asking(EntityPath, source=source, entity=entity)).data
    if as_json:
        for each in found:
            print_json(each.model_dump())
        return
    columns = ("handler", "account", "version", "event", "done")
    show(columns, [(each.handler, each.account, each.version, each.event, each.raised_at) for each in found])


@entities.command("forget")
@_SOURCE
@_ENTITY
def forget_(source: str, entity: str) -> None:
    """Forget what was done of ENTITY; whatever comes next is its newest. Audited."""
    with desk() as here:
        here.ask(forget_entity, which=asking(EntityPath, source=source, entity=entity))
    tell(f"forgot {clean(entity)} of {clean(source)}; the next event about it is the newest")
