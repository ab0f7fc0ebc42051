"""The field on top of every page: finds by id, type, account, or by what bodies hold, whichever fits first."""

from urllib.parse import urlencode

import psycopg
from flask import Response, make_response, redirect, request, url_for

from hookonce.receiver.dashboard.blueprint import admin, context
from hookonce.receiver.ledger.queries import choices, event_lookup

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
        with context().ledger() as connection:
            number, fields = _found(connection, typed)
        if number is not None:
            return make_response(redirect(url_for("admin.event", number=number), 303))
    return make_response(redirect(url_for("admin.events") + (f"?{urlencode(fields)}" if fields else ""), 303))


def _found(connection: psycopg.Connection, typed: str) -> tuple[int | None, dict[str, str]]:
    """Return the event that is meant, or the fields of a list."""
    name, mark, rest = (part.strip() for part in typed.partition(":"))
    is_source = bool(mark) and name in context().settings.sources
    if mark and rest and name in NAMED and not is_source:
        return None, {name: rest}
    try:
        number = event_lookup.find(connection, typed)
    except event_lookup.Ambiguous:
        return None, {"source": name, "id": rest} if is_source else {"id": typed}
    if number is not None or is_source:
        return number, {"source": name, "id": rest}
    known = choices.choices(connection)
    if typed in known.types or "*" in typed:
        return None, {"type": typed}
    if typed in known.accounts:
        return None, {"account": typed}
    return None, {"source": typed} if typed in known.sources else {"body": typed}
