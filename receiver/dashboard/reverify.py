"""Another chance for what a source refused and kept whole, once its secret is mended."""

from datetime import timedelta

from flask import Response, request

from hookonce.receiver.dashboard.blueprint import admin, context, to_page
from hookonce.receiver.desk.forms import read_model
from hookonce.receiver.desk.rejected import ReverifyRequest, reverified
from hookonce.receiver.desk.sources import SourcePath

MAX_TIME = timedelta(seconds=15)
"""For one request; what is left is for the next, or for `hookonce reverify`."""


@admin.post("/reverify")
def reverify() -> Response:
    """Check a source's quarantine again; take in what is genuine."""
    which = read_model(SourcePath, {"source": request.form.get("source")})
    with context().desk() as here:
        done = reverified(here, which, ReverifyRequest(), MAX_TIME)
    genuine = done.genuine + done.empty
    return to_page("rejected", looked_at=done.looked_at, genuine=genuine, taken=done.accepted)
