"""Whose events the stories send, and what their handlers are; the handlers themselves are in `handlers.py`."""

from pathlib import Path

from tests.support.stories.history import Plan

SECRET = "whsec_of_the_stories"
SENDERS = Path(__file__).parent / "senders"

PLANS = (
    Plan("credit", "stripe", "invoice.*", 4),
    Plan("mail", "stripe", "invoice.paid", 4),
    Plan("track", "depot", "parcel.*", 4),
    Plan("build", "github", "push", 4),
    Plan("count", "depot", "crate.*", 4),
)

CONFIGURATION = f"""
[receiver]
handlers = ["tests.support.stories.handlers"]
providers = ["{SENDERS}"]
[sources.stripe]
secrets = ["env:STORY_SECRET"]
[sources.depot]
secrets = ["env:STORY_SECRET"]
[sources.github]
secrets = ["env:STORY_SECRET"]
repeats = "hold"
"""
