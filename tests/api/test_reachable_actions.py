"""Where each action of the desk can be reached: by a command, by the API, by a tool of agents, on a page.

The API and the tools are made of the desk's list. `WHERE` names the command and the page of each action, and `MISSING`
is the record of what is not reachable somewhere, with the reason. A new action is in neither, and fails here until
somebody decides.
"""

import click
import pytest
from flask import Flask

from hookonce.receiver.api.routes import BY_NAME
from hookonce.receiver.cli import cli
from hookonce.receiver.dashboard import mount
from hookonce.receiver.dashboard.blueprint import admin
from hookonce.receiver.desk.actions import ACTIONS

COMMAND, PAGE = "command", "page"
WHERE = {
    "list_client_commands": {COMMAND: "commands", PAGE: "client_commands"},
    "list_dead_letters": {COMMAND: "events list"},
    "list_issues": {COMMAND: "issues list", PAGE: "issues"},
    "get_issue": {COMMAND: "issues show", PAGE: "issue"},
    "mark_issue": {COMMAND: "issues fix", PAGE: "mark"},
    "list_events": {COMMAND: "events list", PAGE: "events"},
    "count_events": {COMMAND: "replay", PAGE: "bulk_new"},
    "get_event": {COMMAND: "events show", PAGE: "event"},
    "get_other_body": {COMMAND: "events show", PAGE: "download_conflict"},
    "get_event_body": {COMMAND: "events show", PAGE: "download"},
    "diff_event": {PAGE: "diff"},
    "send_edited_event": {PAGE: "send_edited"},
    "list_audit": {PAGE: "audit"},
    "list_alerts": {COMMAND: "alerts list", PAGE: "alerts"},
    "send_test_alert": {COMMAND: "alerts test", PAGE: "test_alert"},
    "list_handlers": {COMMAND: "handlers list", PAGE: "handlers"},
    "list_pauses": {COMMAND: "resume", PAGE: "handlers"},
    "pause": {COMMAND: "pause", PAGE: "pause"},
    "resume": {COMMAND: "resume", PAGE: "resume"},
    "get_stats": {COMMAND: "stats", PAGE: "overview"},
    "prune": {COMMAND: "prune"},
    "forget_window": {COMMAND: "window forget"},
    "get_token": {COMMAND: "login"},
    "begin_pull": {COMMAND: "listen"},
    "pull_events": {COMMAND: "listen"},
    "pull_event": {COMMAND: "listen"},
    "list_sources": {COMMAND: "sources list", PAGE: "sources"},
    "get_source": {PAGE: "source"},
    "send_test_event": {PAGE: "send_test_event"},
    "list_providers": {COMMAND: "providers list"},
    "list_handed_secrets": {COMMAND: "secrets list"},
    "forget_handed_secret": {COMMAND: "secrets forget"},
    "list_quarantine": {COMMAND: "quarantine", PAGE: "rejected"},
    "reverify_source": {COMMAND: "reverify", PAGE: "reverify"},
    "list_rejected": {COMMAND: "rejected list", PAGE: "rejected"},
    "list_conflicts": {COMMAND: "conflicts list"},
    "replay": {COMMAND: "replay", PAGE: "replay"},
    "release": {COMMAND: "replay", PAGE: "replay"},
    "start_bulk_replay": {COMMAND: "replay", PAGE: "bulk_start"},
    "list_bulk_replays": {COMMAND: "replays", PAGE: "bulks"},
    "get_bulk_replay": {COMMAND: "replay", PAGE: "bulk"},
    "stop_bulk_replay": {COMMAND: "replay", PAGE: "bulk_stop"},
    "continue_bulk_replay": {COMMAND: "replay", PAGE: "bulk_go_on"},
    "search_bodies": {COMMAND: "events list", PAGE: "find"},
    "list_stopped_steps": {COMMAND: "steps list", PAGE: "stopped_steps"},
    "list_steps": {COMMAND: "steps list", PAGE: "event"},
    "decide_step": {COMMAND: "steps done", PAGE: "decide"},
    "list_workers": {PAGE: "overview"},
    "explain_word": {COMMAND: "help"},
}
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
    PAGE: {
        "get_token": "pages are signed in to without a token of the API",
        "begin_pull": "for a person's own machine",
        "pull_events": "for a person's own machine",
        "pull_event": "for a person's own machine",
        "list_providers": "the documents have them",
        "list_dead_letters": "the page of issues groups them by place",
        **dict.fromkeys(
            (
                "forget_handed_secret",
                "forget_window",
                "list_conflicts",
                "list_handed_secrets",
                "prune",
                "explain_word",
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


def test_each_action_is_a_tool_with_its_fields():
    pytest.importorskip("mcp")
    from hookonce.receiver.api.mcp.tools import CONFIRM, Tools  # noqa: PLC0415  needs the extra

    tools = {each.name: set(each.input_schema["properties"]) for each in Tools(read_only=False).listed}
    fields = {
        name: {field for model in each.inputs.values() for field in model.model_fields}
        for name, each in ACTIONS.items()
    }

    assert tools == {**fields, CONFIRM: {"confirmation"}}
