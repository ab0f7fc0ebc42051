"""Puts the dashboard into the application; pages put themselves into its blueprint when they are imported here."""

import hashlib
from pathlib import Path

from flask import Flask
from jinja2 import StrictUndefined
from werkzeug.routing import IntegerConverter, Map

from hookonce.receiver.config.settings import Settings
from hookonce.receiver.dashboard import (
    bulk_replay,
    event_selection,
    events,
    find,
    handlers,
    issues,
    lists,
    operations,
    overview,
    rejected,
    reverify,
    sign_in,
)
from hookonce.receiver.dashboard.blueprint import EXTENSION, DashboardContext, admin
from hookonce.receiver.dashboard.documents import pages
from hookonce.receiver.dashboard.event_page import diff, edit, page, send_again
from hookonce.receiver.dashboard.sessions import Sessions
from hookonce.receiver.dashboard.sign_in_throttle import SignInThrottle, shared_attempts
from hookonce.receiver.dashboard.source_pages import source, sources
from hookonce.receiver.dashboard.tabs import TABS
from hookonce.receiver.dashboard.template_filters import FILTERS
from hookonce.receiver.desk.models import MAX_ID
from hookonce.receiver.desk.rows import StepStatus, calls
from hookonce.receiver.intake.pipeline import Intake
from hookonce.receiver.ledger.states import EventStatus, RunStatus


class _Id(IntegerConverter):
    """A number in a path: an id, so one that PostgreSQL can have; any other is of no page."""

    def __init__(self, rules: Map) -> None:
        super().__init__(rules, min=1, max=MAX_ID)


def attach(app: Flask, settings: Settings, intake: Intake) -> None:
    """Serve /admin if there is an admin token; without one, it does not exist."""
    if not settings.admin.token:
        return
    attempts = SignInThrottle(shared=shared_attempts(settings.window_url, intake.breaker))
    app.extensions[EXTENSION] = DashboardContext(settings, intake, Sessions(settings.admin.token), attempts)
    app.jinja_env.filters.update(FILTERS)
    app.jinja_env.globals.update(
        edition=_edition(),
        EventStatus=EventStatus,
        StepStatus=StepStatus,
        RunStatus=RunStatus,
        TABS=TABS,
        calls=calls,
    )
    app.jinja_env.undefined = StrictUndefined
    app.jinja_env.trim_blocks = app.jinja_env.lstrip_blocks = True
    app.url_map.converters["int"] = _Id
    app.register_blueprint(admin)


def _edition() -> str:
    """Return a name of the static files' content, so that a browser may keep them for ever."""
    files = sorted((Path(__file__).parent / "static").iterdir())
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]
