"""Choices of an operator for any sender: places of ids and accounts, how much may come, how long ids are known."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Literal

from hookonce.providers.kit.provider import Provider
from hookonce.providers.kit.registry.chosen_ids import ChosenIds, place
from hookonce.providers.kit.registry.declared_options import reason_for_one_id
from hookonce.providers.kit.sender import TOO_MANY
from hookonce.receiver.config.durations import parse_duration
from hookonce.receiver.source import FOREVER

MIN_KEEP_EVENTS = timedelta(days=3)
"""Most senders retry for up to three days; an event forgotten before that would be handled again."""
_FOREVER = "forever"


def parse_horizon(value: object) -> timedelta | None:
    """Read `400d` or `forever`. Raises: ValueError saying what was expected."""
    if value is None or isinstance(value, timedelta):
        return value
    try:
        kept = FOREVER if value == _FOREVER else parse_duration(value)
    except ValueError as error:
        raise ValueError(f'{error}; or "{_FOREVER}"') from None
    return outlasts_retries(kept)


def outlasts_retries(kept: timedelta) -> timedelta:
    """Return it. Raises: ValueError for a time within which most senders still retry."""
    if kept < MIN_KEEP_EVENTS:
        raise ValueError("expected 3d or more, since a later retry would count as a new event")
    return kept


def id_places(value: object) -> object:
    """Return a list of places, where one may be written by itself."""
    return [value] if isinstance(value, str) else value


def checked_ids(found: ChosenIds, mistakes: list[str]) -> ChosenIds:
    """Return where ids and accounts are to be, adding to `mistakes`; a mistake leaves the sender's own."""
    wrong = len(mistakes)
    for name, places in (("id", found.places), ("account", filter(None, [found.account]))):
        for each in places:
            try:
                place(each)
            except ValueError as error:
                mistakes.append(f"{name}: {error}")
    if len(set(found.places)) < len(found.places):
        mistakes.append("id: a place is named twice")
    reasons = {each: reason_for_one_id(each) for each in found.places}
    if found.places and all(reasons.values()):
        said = "; ".join(f"{each!r}, {why}" for each, why in reasons.items())
        mistakes.append(
            f"id is {said}: all events but the first would be duplicates; name a place that tells events apart, "
            "such as '$.order.id', or leave id out for the sender's own"
        )
    return ChosenIds() if len(mistakes) > wrong else found


def refusal(
    over_limit: Literal["hold", "refuse"] | None, provider: Provider, mistakes: list[str], *, limited: bool
) -> int | None:
    """Return the status that what is beyond a limit is refused with; None where it is put off instead.

    Unless the operator says, only a sender is refused that is known to come again and to leave the endpoint alone.
    """
    if over_limit and not limited:
        mistakes.append("has over_limit and neither rate nor quota; set one, or remove it")
    if over_limit == "hold" or not limited:
        return None
    if over_limit is None:
        return provider.may_be_refused_with
    mistakes.extend(_may_not_be_refused(provider))
    return provider.may_be_refused_with or TOO_MANY


def _may_not_be_refused(provider: Provider) -> Iterator[str]:
    if provider.disables_after:
        yield (
            f'has over_limit = "refuse", but {provider.name} disables endpoints ({provider.disables_after}); '
            'set "hold", so that all is accepted and put off'
        )
    if provider.retries_on is not None and not {TOO_MANY, 503} & set(provider.retries_on):
        yield (
            f'has over_limit = "refuse", but {provider.name} does not send again what is answered 429 or 503; '
            'set "hold", so that nothing is lost'
        )
