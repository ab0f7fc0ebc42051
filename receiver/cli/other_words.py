"""Other words for commands: former names, those of other tools, and everyday ones; each leads to the command."""

from collections.abc import Iterable
from typing import Final

_WORDS: Final = {
    "hookonce limits": "batches breaker breakers limit rate rates slots throttle",
    "hookonce explain": "decode inspect verify why",
    "hookonce help exits": "codes exits",
    "hookonce help NAME": "man usage",
    "hookonce docs": "guide manual",
    "hookonce events conflicts": "conflict conflicts",
    "hookonce events discard": "abandon ack cancel discard drop skip",
    "hookonce events erase": "delete erase gdpr purge remove rm",
    "hookonce events export": "backup dump export",
    "hookonce events forget-window": "window",
    "hookonce events import": "import load restore",
    "hookonce events list": "dead deliveries failed find inbox list ls messages queue search webhooks",
    "hookonce events show": "cat describe get log logs payload show trace view",
    "hookonce issues list": "bugs errors exceptions failures",
    "hookonce issues fix": "close resolve resolved",
    "hookonce rejected quarantine": "quarantine",
    "hookonce rejected list": "denied invalid refused",
    "hookonce sources list": "endpoints source urls",
    "hookonce sources secrets": "secret secrets",
    "hookonce replay": "redeliver redo redrive reprocess requeue rerun resend retry",
    "hookonce pause": "disable hold stop suspend",
    "hookonce resume": "continue enable unpause",
    "hookonce trigger": "emit fire sample send simulate test",
    "hookonce dev": "develop local run start up",
    "hookonce serve": "http receiver server web",
    "hookonce worker": "consumer process work",
    "hookonce tail": "follow stream watch",
    "hookonce stats": "count counts info metrics status summary top",
    "hookonce doctor": "check diagnose health lint validate",
    "hookonce db upgrade": "migrate migrations schema upgrade",
    "hookonce tokens create": "add auth create token",
    "hookonce tokens revoke": "expire",
    "hookonce login": "auth connect",
    "hookonce audit": "history",
}
"""Command → words for it. In a group one of its own commands goes before those of others."""


def command_for(word: str, group: str, commands: Iterable[str]) -> str | None:
    """Return the command that somebody means by a word who typed it after `group`, which has `commands`; if one is."""
    own = {f"{group} {name}" for name in commands}
    found = [command for command, words in _WORDS.items() if word in words.split()]
    near = [command for command in found if command in own]
    is_general = group in {"hookonce", "hookonce events"}
    return next(iter(near or (found if is_general else ())), None)
