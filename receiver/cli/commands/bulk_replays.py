"""`hookonce replays`: bulk replays, and how far each is."""

from hookonce.receiver.cli.action_command import listing
from hookonce.receiver.desk.forms import plain
from hookonce.receiver.desk.replays import list_bulk_replays

replays = listing(
    list_bulk_replays,
    {
        "number": "id",
        "by": "who",
        "started": "started_at",
        "state": "state",
        "matched": "matched",
        "replayed": "replayed",
        "left alone": "left_alone",
        "of": lambda bulk: plain(bulk.filter),
    },
    "no bulk replay yet; `hookonce replay --status dead` starts one",
    document=lambda bulk: bulk.model_dump() | {"is_complete": bulk.state == "complete"},
    about="List bulk replays, newest first: whose, of what, and how far.",
)
