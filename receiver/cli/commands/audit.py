"""`hookonce audit`: what people and programs did."""

from hookonce.receiver.cli.action_command import listing
from hookonce.receiver.desk.access.history import list_audit
from hookonce.receiver.desk.forms import plain

audit = listing(
    list_audit,
    {
        "id": "id",
        "at": "at",
        "by": "who",
        "did": "action",
        "to": "subject",
        "detail": lambda row: plain(row.detail),
    },
    "no change matches",
)
