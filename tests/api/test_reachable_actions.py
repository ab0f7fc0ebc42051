"""Where each action of the desk can be reached: by a command, by the API, by a tool of agents, on a page.

`WHERE` names the command, the tool and the page of each; the API has them all. `MISSING` is the record of what is not
reachable somewhere, with the reason. A new action is in neither, and fails here until somebody decides.
"""

import asyncio
from inspect import getsource

import click
import pytest
from flask import Flask

from hookonce.receiver.api.routes import BY_NAME
from hookonce.receiver.cli import cli
from hookonce.receiver.dashboard import mount
from hookonce.receiver.dashboard.blueprint import admin
from hookonce.receiver.desk.actions import ACTIONS

COMMAND, TOOL, PAGE = "command", "tool", "page"
WHERE = {
    "list_client_commands": {COMMAND: "commands"},
    "list_dead_letters": {COMMAND: "events list", TOOL: "why_dead", PAGE: "dead"},
    "list_events": {COMMAND: "events list", TOOL: "list_events", PAGE: "events"},
    "count_events": {COMMAND: "replay", TOOL: "count_events", PAGE: "bulk_new"},
    "get_event": {COMMAND: "events show", TOOL: "show_event", PAGE: "event"},
    "get_other_body": {COMMAND: "events show", PAGE: "download_conflict"},
    "get_event_body": {COMMAND: "events show", TOOL: "read_body", PAGE: "download"},
    "diff_event": {PAGE: "diff"},
    "send_edited_event": {PAGE: "send_edited"},
    "list_audit": {TOOL: "list_changes"},
    "list_alerts": {COMMAND: "alerts list", TOOL: "list_alerts", PAGE: "overview"},
    "send_test_alert": {COMMAND: "alerts test"},
    "list_handlers": {COMMAND: "handlers list", TOOL: "list_handlers", PAGE: "handlers"},
    "list_pauses": {COMMAND: "resume", TOOL: "overview", PAGE: "handlers"},
    "pause": {COMMAND: "pause", PAGE: "pause"},
    "resume": {COMMAND: "resume", PAGE: "resume"},
    "get_stats": {COMMAND: "stats", TOOL: "overview", PAGE: "overview"},
    "prune": {COMMAND: "prune"},
    "forget_window": {COMMAND: "window forget"},
    "get_token": {COMMAND: "login", TOOL: "who_am_i"},
    "begin_pull": {COMMAND: "listen"},
    "pull_events": {COMMAND: "listen"},
    "pull_event": {COMMAND: "listen"},
    "list_sources": {COMMAND: "sources list", TOOL: "list_sources", PAGE: "sources"},
    "get_source": {PAGE: "source"},
    "send_test_event": {PAGE: "send_test_event"},
    "list_providers": {COMMAND: "providers list"},
    "list_handed_secrets": {COMMAND: "secrets list"},
    "forget_handed_secret": {COMMAND: "secrets forget"},
    "list_quarantine": {COMMAND: "quarantine", TOOL: "list_quarantine", PAGE: "rejected"},
    "reverify_source": {COMMAND: "reverify", PAGE: "reverify"},
    "list_rejected": {COMMAND: "rejected list", TOOL: "list_rejected", PAGE: "rejected"},
    "list_conflicts": {COMMAND: "conflicts list", TOOL: "list_conflicts"},
    "replay": {COMMAND: "replay", TOOL: "replay", PAGE: "replay"},
    "release": {COMMAND: "replay", PAGE: "replay"},
    "start_bulk_replay": {COMMAND: "replay", TOOL: "replay", PAGE: "bulk_start"},
    "list_bulk_replays": {COMMAND: "replays", TOOL: "list_bulk_replays"},
    "get_bulk_replay": {COMMAND: "replay", PAGE: "bulk"},
    "stop_bulk_replay": {COMMAND: "replay", PAGE: "bulk_stop"},
    "continue_bulk_replay": {COMMAND: "replay", PAGE: "bulk_go_on"},
    "search_bodies": {COMMAND: "events list", PAGE: "find"},
    "list_stopped_steps": {COMMAND: "steps list"},
    "list_steps": {COMMAND: "steps list", PAGE: "event"},
    "decide_step": {COMMAND: "steps done", PAGE: "decide"},
    "list_workers": {PAGE: "overview"},
}
_AGENTS_LOOK = "agents look, and replay by a plan; whatever else changes something is a person's"
_NOT_YET = "nothing forbids it; it is not built"
MISSING = {
    COMMAND: {
        "diff_event": _NOT_YET,
        "list_audit": _NOT_YET,
        "send_edited_event": _NOT_YET,
        "list_workers": _NOT_YET,
        "get_source": "`sources list` says as much of each",
        "send_test_event": "`trigger` signs what it sends, as the sender would",
    },
    TOOL: {
        "diff_event": _NOT_YET,
        "get_other_body": _NOT_YET,
        "get_bulk_replay": "`list_bulk_replays` says as much of each",
        "get_source": "`list_sources` says as much of each",
        "list_client_commands": _NOT_YET,
        "list_handed_secrets": "secrets are no matter of agents",
        "list_providers": "the documents have them",
        "list_steps": "`show_event` has them",
        "list_stopped_steps": _NOT_YET,
        "list_workers": _NOT_YET,
        "search_bodies": "bodies are read one at a time, by `read_body`",
        "begin_pull": "bodies leave one at a time",
        "pull_events": "bodies leave one at a time",
        "pull_event": "bodies leave one at a time",
        **dict.fromkeys(
            (
                "continue_bulk_replay",
                "decide_step",
                "forget_handed_secret",
                "forget_window",
                "pause",
                "prune",
                "release",
                "resume",
                "reverify_source",
                "send_edited_event",
                "send_test_alert",
                "send_test_event",
                "stop_bulk_replay",
            ),
            _AGENTS_LOOK,
        ),
    },
    PAGE: {
        "get_token": "pages are signed in to without a token of the API",
        "begin_pull": "for a person's own machine",
        "pull_events": "for a person's own machine",
        "pull_event": "for a person's own machine",
        "list_providers": "the documents have them",
        **dict.fromkeys(
            (
                "forget_handed_secret",
                "forget_window",
                "list_audit",
                "list_bulk_replays",
                "list_client_commands",
                "list_conflicts",
                "list_handed_secrets",
                "list_stopped_steps",
                "prune",
                "send_test_alert",
            ),
            _NOT_YET,
        ),
    },
}


def commands(group, before=""):
    """Give every command by its name on the line, as `events list`."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        yield f"{before}{name}"
        if isinstance(command, click.Group):
            yield from commands(command, f"{before}{name} ")


def there(surface):
    return {where[surface] for where in WHERE.values() if surface in where}


@pytest.mark.parametrize("surface", MISSING)
def test_action_is_reachable_or_its_absence_has_a_reason(surface):
    reachable = {name for name, where in WHERE.items() if surface in where}

    assert reachable | MISSING[surface].keys() == ACTIONS.keys()
    assert reachable & MISSING[surface].keys() == set()
    assert all(MISSING[surface].values())


def test_each_command_that_reaches_an_action_is_there():
    assert there(COMMAND) <= set(commands(cli))


def test_each_page_that_reaches_an_action_is_there():
    application = Flask("pages")
    application.register_blueprint(admin)

    assert mount.PAGES  # which have put themselves into the blueprint
    assert there(PAGE) <= {rule.endpoint.removeprefix("admin.") for rule in application.url_map.iter_rules()}


def test_each_action_has_a_route_of_its_own():
    routes = {(each.method, each.path) for each in BY_NAME.values()}

    assert BY_NAME.keys() == ACTIONS.keys()
    assert len(routes) == len(ACTIONS)


def test_each_tool_that_reaches_an_action_is_there_and_asks_its_route():
    pytest.importorskip("mcp")
    from hookonce.receiver.api.mcp import api_client, lookups, replays, server  # noqa: PLC0415  needs the extra

    tools = {each.name for each in asyncio.run(server.server(lambda _: None, read_only=False).list_tools())}
    asked = "".join(map(getsource, (api_client, lookups, replays)))

    assert there(TOOL) <= tools
    paths = {name: BY_NAME[name].path.split("{")[0] for name, where in WHERE.items() if TOOL in where}
    assert [name for name, path in paths.items() if f'"{path}' not in asked] == []
