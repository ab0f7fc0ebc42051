"""`hookonce commands`: what clients asked for under a key."""

from hookonce.receiver.cli.action_command import listing
from hookonce.receiver.desk.events import list_client_commands

commands = listing(
    list_client_commands,
    {
        "id": "id",
        "command": "name",
        "account": "account",
        "state": "state",
        "received": "received_at",
        "times asked": "deliveries",
    },
    "no command matches; [commands.NAME] in hookonce.toml takes them",
    about="List commands of clients, newest first, and what became of each; `hookonce events show ID` has all of one.",
)
