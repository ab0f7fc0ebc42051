"""`hookonce audit`: what people and programs did."""

from hookonce.receiver.cli.action_command import listing
from hookonce.receiver.desk.forms import plain
from hookonce.receiver.desk.history import list_audit

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
