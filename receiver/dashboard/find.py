"""The field on top of every page: finds by id, type, account, or by what bodies contain, whichever fits first."""

from flask import Response, request

from hookonce.receiver.dashboard.blueprint import admin, context, to_page
from hookonce.receiver.desk.events import choices_of, number_of
from hookonce.receiver.desk.refusals import Ambiguous, NotFound
from hookonce.receiver.desk.registry import Desk

NAMED = ("type", "account", "handler", "body")
"""Names that may stand before a colon, to say what the rest is."""


@admin.get("/find")
def find() -> Response:
    """Go to the event that an id, `source:id` or the beginning of one names; else to a list."""
    typed = request.args.get("id", "").replace("\0", "").strip()
    fields: dict[str, str] = {}
    if typed[:1] in {"$", '"'}:
        fields = {"body": typed}
    elif typed:
        with context().desk() as here:
            number, fields = _found(here, typed)
        if number is not None:
            return to_page("event", number=number)
    return to_page("events", **fields)


def _found(here: Desk, typed: str) -> tuple[int | None, dict[str, str]]:
    """Return the event that is meant, or the fields of a list."""
    name, mark, rest = (part.strip() for part in typed.partition(":"))
    is_source = bool(mark) and name in context().settings.sources
    if mark and rest and name in NAMED and not is_source:
        return None, {name: rest}
    try:
        return number_of(here, typed), {}
    except NotFound as error:
        if is_source or isinstance(error, Ambiguous):
            return None, {"source": name, "id": rest} if is_source else {"id": typed}
    known = choices_of(here)
    if typed in known.types or "*" in typed:
        return None, {"type": typed}
    name = "account" if typed in known.accounts else "source" if typed in known.sources else "body"
    return None, {name: typed}
