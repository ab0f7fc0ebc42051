"""Puts the dashboard into the application."""

import hashlib
from pathlib import Path

from flask import Flask
from jinja2 import StrictUndefined

from receiver.admin import (
    bulk,
    dead,
    event,
    events,
    handlers,
    overview,
    rejected,
    second_look,
    signin,
    sources,
)
from receiver.admin.says import FILTERS
from receiver.admin.sessions import Sessions
from receiver.admin.shell import EXTENSION, Desk, admin
from receiver.intake import Intake
from receiver.settings import Settings

PAGES = (signin, overview, events, event, dead, bulk, rejected, second_look, sources, handlers)
"""Modules that add pages to the blueprint when they are imported."""


def attach(app: Flask, settings: Settings, intake: Intake) -> None:
    """Serve /admin if there is an admin token; without one, it does not exist."""
    if not settings.admin_token:
        return
    app.extensions[EXTENSION] = Desk(settings, intake, Sessions(settings.admin_token))
    app.jinja_env.filters.update(FILTERS)
    app.jinja_env.globals["edition"] = _edition()
    app.jinja_env.undefined = StrictUndefined
    app.jinja_env.trim_blocks = app.jinja_env.lstrip_blocks = True
    app.register_blueprint(admin)


def _edition() -> str:
    """Name the content of the static files, so that a browser may keep them for ever."""
    files = sorted((Path(__file__).parent / "static").iterdir())
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]
