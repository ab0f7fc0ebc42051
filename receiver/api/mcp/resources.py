"""Resources of an agent, each by an address: events and sources, where the API has them.

`hookonce://events/12` is what `GET /events/12` answers, and so is every other read of an event or a source.
"""

import re
from typing import Final
from urllib.parse import unquote

from mcp_types import Resource, ResourceTemplate

from hookonce.receiver.api.mcp.fence import Fenced
from hookonce.receiver.api.routes import OPERATIONS
from hookonce.receiver.desk.forms import read
from hookonce.receiver.desk.refusals import NotFound
from hookonce.receiver.desk.registry import Asks

MIME_TYPE: Final = "text/plain"
_OPERATIONS: Final = {
    f"hookonce:/{each.path}": each
    for each in OPERATIONS
    if each.method == "GET" and re.match("/(events|sources)(/|$)", each.path)
}


def fixed() -> list[Resource]:
    """Return those whose address has no gap."""
    return [
        Resource(name=each.name, uri=uri, description=_line(each.action.about), mime_type=MIME_TYPE)
        for uri, each in _OPERATIONS.items()
        if "{" not in uri
    ]


def templates() -> list[ResourceTemplate]:
    """Return those whose address names something."""
    return [
        ResourceTemplate(
            name=each.name, uri_template=uri, description=_line(each.action.about), mime_type=MIME_TYPE
        )
        for uri, each in _OPERATIONS.items()
        if "{" in uri
    ]


def looked_at(here: Asks, uri: str) -> Fenced:
    """Return what is at an address. Raises: `Refused`, and what keeps the inbox from being asked."""
    for template, operation in _OPERATIONS.items():
        found = re.fullmatch(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/?#]+)", template), uri)
        if found:
            named = {name: unquote(value) for name, value in found.groupdict().items()}
            return Fenced.of(here.ask(operation.action, **read(operation.action, named)))
    raise NotFound(f"nothing is at {uri!r}; expected one like hookonce://events/12 or hookonce://sources")


def _line(about: str) -> str:
    return about.partition("\n")[0]
