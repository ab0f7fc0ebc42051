"""Plans: what an action would do, printed in one way by every command, before it is done or instead of that."""

from typing import Any

import click

from hookonce.receiver.cli.action_command import print_answer
from hookonce.receiver.cli.output.printing import tell
from hookonce.receiver.cli.output.tables import print_json
from hookonce.receiver.desk.models import RequestModel, ResponseModel
from hookonce.receiver.desk.registry import Action, Asks

DRY_RUN = click.option("--dry-run", is_flag=True, help="Only show the plan: nothing is changed.")


def show_plan(here: Asks, action: Action[Any], *, as_json: bool = False, **models: RequestModel) -> None:
    """Print the plan of an action, and change nothing. Raises: `Refused` where it would not be done."""
    shown = action.plan(here, **models).shown
    if as_json:
        print_json(shown.model_dump() if isinstance(shown, ResponseModel) else {})
    elif isinstance(shown, ResponseModel):
        print_answer(shown, "")
    tell("this is the plan; nothing was done")
