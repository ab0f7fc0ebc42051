"""Another chance for what a source refused and kept whole, once its secret is mended."""

import time
from datetime import UTC, datetime, timedelta

from flask import Response, abort, make_response, redirect, request, url_for

from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.dashboard.blueprint import actor, admin, context
from hookonce.receiver.intake import reverification
from hookonce.receiver.intake.reverification import Reverified
from hookonce.receiver.redis.workers import notify

MAX_SECONDS = timedelta(seconds=15)
"""For one request; what is left is for the next, or for `hookonce reverify`."""


@admin.post("/reverify")
def reverify() -> Response:
    """Check a source's quarantine again; take in what is genuine."""
    source = context().settings.sources.get(request.form.get("source", ""))
    if source is None:
        abort(400, "Say which source.")
    done, until = Reverified(), time.monotonic() + MAX_SECONDS.total_seconds()
    ever = datetime.min.replace(tzinfo=UTC)
    try:
        with context().ledger() as connection:
            for progress in reverification.reverify(context().settings, connection, source, ever, actor()):
                done = progress
                if time.monotonic() > until:
                    break
    except ConfigError as error:
        abort(409, str(error))
    notify(context().settings.redis_url)
    genuine = done.genuine + done.empty
    where = url_for("admin.rejected", looked_at=done.looked_at, genuine=genuine, taken=done.accepted)
    return make_response(redirect(where, 303))
