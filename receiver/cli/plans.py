"""Plans: what an action would do, shown in one way by every command, before it is done or instead of that."""

from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar

import click

from hookonce.receiver.cli.output.printing import tell
from hookonce.receiver.cli.output.tables import print_json
from hookonce.receiver.desk.models import RequestModel, ResponseModel
from hookonce.receiver.desk.registry import Action, Answer, Asks, Plan

A = TypeVar("A", bound=Answer)
DRY_RUN = click.option("--dry-run", is_flag=True, help="Only show the plan: nothing is changed.")
YES = click.option("--yes", is_flag=True, help="Do not ask.")


def carried_out(  # noqa: PLR0913  all but three by keyword
    here: Asks,
    action: Action[A],
    show: Callable[[A], None],
    *,
    dry_run: bool,
    as_json: bool = False,
    ask: Callable[[A], None] | None = None,
    left_alone: Collection[str] = (),
    **models: RequestModel,
) -> A:
    """Show the plan of an action, do what it shows and no more, and show the answer, which is returned.

    In a dry run, and where there is nothing to do, the answer is the plan. `ask` asks before what can't be undone.
    Fields named in `left_alone` list what is not done, by the plan and since. Raises: `Refused` where it would not be
    done, and as `ask`.
    """
    plans = plans_of(here, action, **models)
    found: A = summed([each.shown for each in plans])
    plans = [each for each in plans if not getattr(each.models.get("asked"), "dry_run", False)]
    if plans and not dry_run:
        show(found)
        if ask:
            ask(found)
        plan, found = found, summed([here.ask(action, **each.models) for each in plans])
        for name in left_alone:
            setattr(found, name, sorted({*getattr(plan, name), *getattr(found, name)}))
    if as_json and isinstance(found, ResponseModel):
        print_json(found.model_dump(exclude={"next", "keeps"}))
    else:
        show(found)
    if dry_run:
        tell("this is the plan; nothing was done")
    return found


def plans_of(here: Asks, action: Action[Any], **models: RequestModel) -> list[Plan]:
    """Return the plans of all steps of an action. Raises: `Refused`."""
    plans = [action.plan(here, **models)]
    while (cursor := getattr(plans[-1].shown, "next", None)) is not None:
        asked = models["asked"].model_copy(update={"cursor": cursor})
        plans.append(action.plan(here, **models | {"asked": asked}))
    return plans


def summed(answers: Sequence[Any]) -> Any:  # noqa: ANN401  of any action
    """Return the answers of all steps as one: lists and numbers are summed up."""
    found = answers[0]
    for step in answers[1:]:
        for name, value in step:
            if name != "next" and isinstance(value, list | int) and not isinstance(value, bool):
                setattr(found, name, getattr(found, name) + value)
    return found
