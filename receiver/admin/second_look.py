"""Another chance for what a source refused and kept whole, once its secret is mended."""

import time
from datetime import UTC, datetime, timedelta

from flask import Response, abort, make_response, redirect, request, url_for

from receiver.admin.shell import admin, desk, who
from receiver.quarantine import Reverified, reverify
from receiver.settings import ConfigError
from receiver.workers import ring

LONGEST = timedelta(seconds=15)
"""For one request; what is left is for the next, or for `hookonce reverify`."""


@admin.post("/reverify")
def second_look() -> Response:
    """Check a source's quarantine again; take in what is genuine."""
    source = desk().settings.sources.get(request.form.get("source", ""))
    if source is None:
        abort(400, "Say which source.")
    done, until = Reverified(), time.monotonic() + LONGEST.total_seconds()
    ever = datetime.min.replace(tzinfo=UTC)
    try:
        with desk().ledger() as connection:
            for progress in reverify(desk().settings, connection, source, ever, who()):
                done = progress
                if time.monotonic() > until:
                    break
    except ConfigError as error:
        abort(409, str(error))
    ring(desk().settings.redis_url)
    genuine = done.genuine + done.empty
    where = url_for("admin.rejected", looked_at=done.looked_at, genuine=genuine, taken=done.accepted)
    return make_response(redirect(where, 303))
