"""Where each action of the desk can be reached: by a command, by the API, by a tool of agents, on a page.

The API, the tools and the page of all operations are made of the desk's list. `WHERE` names the command and the page of
each action; `operations` has what has no page of its own. A new action is not there, and fails here until it is.
"""

import click
from flask import Flask

from hookonce.receiver.api.routes import BY_NAME
from hookonce.receiver.cli import cli
from hookonce.receiver.dashboard import mount
from hookonce.receiver.dashboard.operations import NO_PAGE
from hookonce.receiver.desk.actions import ACTIONS

WHERE = {
    "list_client_commands": ("commands", "client_commands"),
    "list_dead_letters": ("events list", "operations"),
    "list_issues": ("issues list", "issues"),
    "get_issue": ("issues show", "issue"),
    "mark_issue": ("issues fix", "mark"),
    "list_events": ("events list", "events"),
    "count_events": ("replay", "bulk_new"),
    "follow_events": ("tail", "operations"),
    "list_tokens": ("tokens list", "operations"),
    "revoke_token": ("tokens revoke", "operations"),
    "list_keys": ("keys list", "operations"),
    "get_event": ("events show", "event"),
    "get_other_body": ("events show", "download_conflict"),
    "get_event_body": ("events show", "download"),
    "diff_event": ("events diff", "diff"),
    "send_edited_event": ("events edit", "send_edited"),
    "list_audit": ("audit", "audit"),
    "list_alerts": ("alerts list", "alerts"),
    "send_test_alert": ("alerts test", "test_alert"),
    "list_handlers": ("handlers list", "handlers"),
    "list_pauses": ("resume", "handlers"),
    "pause": ("pause", "pause"),
    "resume": ("resume", "resume"),
    "get_stats": ("stats", "overview"),
    "prune": ("prune", "operations"),
    "forget_window": ("events forget-window", "operations"),
    "get_token": ("login", None),
    "begin_pull": ("listen", None),
    "pull_events": ("listen", None),
    "pull_event": ("listen", None),
    "list_sources": ("sources list", "sources"),
    "get_source": ("sources show", "source"),
    "send_test_event": ("trigger", "send_test_event"),
    "list_providers": ("providers list", "operations"),
    "list_handed_secrets": ("sources secrets list", "operations"),
    "forget_handed_secret": ("sources secrets forget", "operations"),
    "list_quarantine": ("rejected quarantine", "rejected"),
    "reverify_source": ("reverify", "reverify"),
    "list_rejected": ("rejected list", "rejected"),
    "get_rejected": ("rejected show", "refusal"),
    "explain_rejected": ("rejected explain", "refusal"),
    "list_conflicts": ("events conflicts", "operations"),
    "replay": ("replay", "replay"),
    "release": ("replay", "replay"),
    "erase_events": ("events erase", "operations"),
    "discard_events": ("events discard", "discard"),
    "start_bulk_replay": ("replay", "bulk_start"),
    "list_bulk_replays": ("replays", "bulks"),
    "get_bulk_replay": ("replay", "bulk"),
    "step_bulk_replay": ("replay", "bulk_start"),
    "stop_bulk_replay": ("replay", "bulk_stop"),
    "continue_bulk_replay": ("replay", "bulk_go_on"),
    "search_bodies": ("events list", "find"),
    "list_stopped_steps": ("steps list", "stopped_steps"),
    "list_steps": ("steps show", "event"),
    "decide_step": ("steps done", "decide"),
    "get_entity": ("entities show", "operations"),
    "forget_entity": ("entities forget", "operations"),
    "list_waits": ("waits list", "operations"),
    "wake": ("waits wake", "operations"),
    "list_workers": ("workers", "overview"),
    "explain_word": ("help", "operations"),
}
EXCEPTIONS = {
    "get_token": "pages are signed in to without a token of the API",
    **dict.fromkeys(
        ("begin_pull", "pull_events", "pull_event"), "events for a person's own machine, no page"
    ),
}
"""What no page has, and why; everything else is everywhere."""


def commands(group, before=""):
    """Give every command by its name on the line, as `events list`."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        yield f"{before}{name}"
        if isinstance(command, click.Group):
            yield from commands(command, f"{before}{name} ")


def test_each_action_is_everywhere_but_for_a_few_with_a_reason():
    assert WHERE.keys() == ACTIONS.keys()
    assert {name for name, (_, page) in WHERE.items() if page is None} == EXCEPTIONS.keys() == NO_PAGE
    assert len(EXCEPTIONS) <= 5


def test_each_command_that_reaches_an_action_is_there():
    assert {command for command, _ in WHERE.values()} <= set(commands(cli))


def test_each_page_that_reaches_an_action_is_there():
    application = Flask("pages")
    application.register_blueprint(mount.admin)  # into which the pages have put themselves

    every = {rule.endpoint.removeprefix("admin.") for rule in application.url_map.iter_rules()}
    assert {page for _, page in WHERE.values() if page} <= every


def test_each_action_has_a_route_of_its_own():
    routes = {(each.method, each.path) for each in BY_NAME.values()}

    assert BY_NAME.keys() == ACTIONS.keys()
    assert len(routes) == len(ACTIONS)
