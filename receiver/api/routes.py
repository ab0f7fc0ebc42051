"""The route of each action of the desk in the API."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from hookonce.receiver.desk.actions import ACTIONS
from hookonce.receiver.desk.models import RequestModel
from hookonce.receiver.desk.registry import Action

_HOLE = re.compile(r"\{\w+\}")


class Route(NamedTuple):
    """Method and path, and what a success is answered with; `location`: where the thing is that was made."""

    method: str
    path: str
    status: int = 200
    location: str = ""


_ROUTES: Final[Mapping[str, Route]] = {
    "list_events": Route("GET", "/events"),
    "search_bodies": Route("POST", "/searches"),
    "count_events": Route("GET", "/event-counts"),
    "follow_events": Route("POST", "/followed-events"),
    "get_event": Route("GET", "/events/{event}"),
    "get_event_body": Route("GET", "/events/{event}/body"),
    "send_edited_event": Route("POST", "/events/{event}/edited", 201, "/events/{id}"),
    "diff_event": Route("GET", "/events/{event}/diff"),
    "get_other_body": Route("GET", "/events/{event}/other-bodies/{body}"),
    "list_dead_letters": Route("GET", "/dead-letters"),
    "list_issues": Route("GET", "/issues"),
    "get_issue": Route("GET", "/issues/{issue}"),
    "mark_issue": Route("POST", "/issues/{issue}"),
    "replay": Route("POST", "/replays"),
    "release": Route("POST", "/releases"),
    "erase_events": Route("POST", "/erasures"),
    "discard_events": Route("POST", "/discards"),
    "start_bulk_replay": Route("POST", "/bulk-replays", 201, "/bulk-replays/{id}"),
    "list_bulk_replays": Route("GET", "/bulk-replays"),
    "get_bulk_replay": Route("GET", "/bulk-replays/{bulk}"),
    "step_bulk_replay": Route("POST", "/bulk-replays/{bulk}/steps"),
    "stop_bulk_replay": Route("POST", "/bulk-replays/{bulk}/stop"),
    "continue_bulk_replay": Route("POST", "/bulk-replays/{bulk}/continue"),
    "begin_pull": Route("POST", "/pulls", 201),
    "pull_events": Route("GET", "/pulls/{pull}/events"),
    "pull_event": Route("GET", "/pulls/{pull}/events/{event}"),
    "list_stopped_steps": Route("GET", "/stopped-steps"),
    "list_steps": Route("GET", "/events/{event}/steps"),
    "decide_step": Route("POST", "/events/{event}/steps"),
    "get_entity": Route("GET", "/sources/{source}/entities/{entity}"),
    "forget_entity": Route("DELETE", "/sources/{source}/entities/{entity}"),
    "list_waits": Route("GET", "/waits"),
    "wake": Route("POST", "/events/{event}/wake"),
    "list_rejected": Route("GET", "/rejected"),
    "get_rejected": Route("GET", "/rejected/{rejection}"),
    "explain_rejected": Route("GET", "/rejected/{rejection}/explanation"),
    "list_conflicts": Route("GET", "/conflicts"),
    "list_quarantine": Route("GET", "/quarantine"),
    "reverify_source": Route("POST", "/sources/{source}/reverify"),
    "list_sources": Route("GET", "/sources"),
    "get_source": Route("GET", "/sources/{source}"),
    "send_test_event": Route("POST", "/sources/{source}/test-events", 201),
    "list_providers": Route("GET", "/providers"),
    "list_handed_secrets": Route("GET", "/secrets"),
    "forget_handed_secret": Route("DELETE", "/secrets/{source}"),
    "list_handlers": Route("GET", "/handlers"),
    "list_pauses": Route("GET", "/pauses"),
    "pause": Route("PUT", "/pauses/{kind}/{name}"),
    "resume": Route("DELETE", "/pauses/{kind}/{name}"),
    "list_workers": Route("GET", "/workers"),
    "list_audit": Route("GET", "/audit"),
    "list_alerts": Route("GET", "/alerts"),
    "send_test_alert": Route("POST", "/alerts/test", 201, "/events/{event}"),
    "get_stats": Route("GET", "/stats"),
    "prune": Route("POST", "/prune"),
    "forget_window": Route("POST", "/window/forget"),
    "get_token": Route("GET", "/token"),
    "list_tokens": Route("GET", "/tokens"),
    "revoke_token": Route("DELETE", "/tokens/{name}"),
    "list_keys": Route("GET", "/keys"),
    "explain_word": Route("GET", "/words/{word}"),
}


@dataclass(frozen=True)
class Operation:
    """An action of the desk under a method and a path; see `Action`."""

    action: Action[Any]
    method: str
    path: str
    status: int
    location: str

    @property
    def name(self) -> str:
        """The action's name, which is the operation id."""
        return self.action.name

    @property
    def inputs(self) -> dict[str, type[RequestModel]]:
        """The models of what is asked by where it comes: in the path, the query, or the body."""
        places = {"which": "path", "asked": "query" if self.method == "GET" else "body"}
        return {places[role]: model for role, model in self.action.inputs.items()}


def _usual(action: Action[Any]) -> Route:
    """Return where what is new is: `open_events` at `/open-events`, by GET unless it changes something."""
    path = "/" + action.name.removeprefix("list_").replace("_", "-")
    fields = action.inputs["which"].model_fields if "which" in action.inputs else ()
    return Route("POST" if action.changes else "GET", "/".join([path, *(f"{{{name}}}" for name in fields)]))


def _operation(action: Action[Any]) -> Operation:
    method, path, status, location = _ROUTES.get(action.name) or _usual(action)
    return Operation(action, method, path, 204 if action.answer is None else status, location)


_LISTED: Final = [*_ROUTES, *(name for name in ACTIONS if name not in _ROUTES)]
OPERATIONS: Final = tuple(_operation(ACTIONS[name]) for name in _LISTED)
"""All operations of the API, in the order of its documents."""
BY_NAME: Final[Mapping[str, Operation]] = {each.name: each for each in OPERATIONS}
"""All operations by the name of the action."""


def methods_at(path: str) -> Sequence[str]:
    """Return the methods that there are at a path: an id may hold a slash, so the template that says most is meant."""
    fitting = [each.path for each in OPERATIONS if _fits(each.path, path)]
    if not fitting:
        return ()
    meant = max(fitting, key=lambda each: len(_HOLE.sub("", each)))
    methods = [each.method for each in OPERATIONS if each.path == meant]
    return [*methods, *(["HEAD"] if "GET" in methods else [])]


def _fits(template: str, path: str) -> bool:
    return re.fullmatch("(?s:.+)".join(map(re.escape, _HOLE.split(template))), path) is not None
