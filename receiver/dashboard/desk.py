"""The desk as a page asks it: on the ledger, as whoever is signed in. A refusal becomes a page that says it."""

from typing import TypeVar

from flask import Response

from hookonce.receiver.dashboard.blueprint import context
from hookonce.receiver.desk.models import RequestModel
from hookonce.receiver.desk.registry import Action, Answer, Octets

A = TypeVar("A", bound=Answer)


def ask(action: Action[A], /, **models: RequestModel) -> A:
    """Ask the desk one thing. Raises: `Refused`."""
    with context().desk() as here:
        return here.ask(action, **models)


def file_of(octets: Octets) -> Response:
    """Return a body as a file, which no browser shows."""
    answer = Response(octets.body, content_type="application/octet-stream")
    answer.headers["Content-Disposition"] = f'attachment; filename="{octets.name}"'
    return answer
