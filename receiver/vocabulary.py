"""What the words mean that operators see: statuses, reasons of refusal, exit codes, environment variables.

The reference pages are written from it, and whoever shows one of these words may show its meaning. The order is
that of an event's life, or of a delivery's checks.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from providers import Reason

EVENT_STATUSES: Final[Mapping[str, str]] = {
    "received": "in the ledger, and due: no worker has taken it yet, or its source is paused",
    "running": "a worker has claimed it; at least one of its runs is under way",
    "waiting": "an attempt failed, or asked for more time; it is due again at a set time",
    "done": "every run ended well",
    "dead": "a run used up its attempts, or its handler gave up; or the event can't be read: needs a person",
    "ignored": "no handler takes events of this type; a worker that starts looks again at the last 15 minutes",
    "held": 'the same body came before under another, unsigned id, and the source has `repeats = "hold"`: or it '
    "was imported without `--run`: needs a person",
}
"""Of an event; of its runs, running goes before waiting, waiting before dead, dead before done."""

RUN_STATUSES: Final[Mapping[str, str]] = {
    "waiting": "not started yet, or to be tried again at its due time",
    "running": "an attempt is under way, under a lease",
    "done": "the handler returned, and what it wrote is committed",
    "dead": "attempts used up, or the handler raised `GiveUp`",
}
"""Of one handler on one event."""


class Refusal(NamedTuple):
    """What a refusal means, and what the operator does about it."""

    means: str
    do: str


REFUSALS: Final[Mapping[Reason, Refusal]] = {
    Reason.UNKNOWN_SOURCE: Refusal(
        "no source of this name is configured, or there is no such path",
        "compare the URL at the sender with `hookonce sources list`; a new source needs a restart of the receivers",
    ),
    Reason.BAD_METHOD: Refusal(
        "not a POST, nor a probe that this sender makes",
        "nothing, if it was a browser or a scanner; otherwise let the sender use POST",
    ),
    Reason.UNSUPPORTED_ENCODING: Refusal(
        "the body is compressed (Content-Encoding); signatures are of the bytes as sent",
        "switch compression off at the sender, or at the proxy that adds it",
    ),
    Reason.TOO_LARGE: Refusal(
        "the body is larger than `max_body`, by Content-Length or while it was read",
        "raise `[receiver] max_body` if the sender is right to send so much",
    ),
    Reason.NO_SECRET: Refusal(
        "the source has no secret to verify with: our fault, so the sender is asked to come again",
        "set the variable or the file that `secrets` names, and restart the receivers; `hookonce reverify` then takes "
        "in what is in quarantine",
    ),
    Reason.MISSING_HEADER: Refusal(
        "a header is missing that this sender always sends",
        "see whether the source has the right `provider`, and whether a proxy drops headers",
    ),
    Reason.BAD_HEADER: Refusal(
        "a header is there and malformed, or the request is no proper HTTP/1.1",
        "see the detail in `hookonce rejected list`; a proxy may have rewritten or joined headers",
    ),
    Reason.BAD_SIGNATURE: Refusal(
        "signed with none of the source's secrets, or changed on its way",
        "compare the secret with the sender's; see that no proxy changes the body or the URL; once it is mended, "
        "`hookonce reverify` takes in what is in quarantine",
    ),
    Reason.STALE: Refusal(
        "signed rightly, but too long ago or in the future",
        "set the clock of the receiver (`hookonce doctor` compares it); a delivery sent again by hand keeps its time",
    ),
    Reason.BAD_BODY: Refusal(
        "cut off, too slow, badly chunked, or not what the provider can read",
        "see the detail in `hookonce rejected list`; the sender may be set to another format (JSON or form)",
    ),
}
"""By reason, of deliveries that `hookonce rejected list` shows."""

UNAVAILABLE: Final[Mapping[str, Refusal]] = {
    "conflict": Refusal(
        'an event id that is known with another body, where the source has `conflicts = "reject"`',
        "look at `hookonce conflicts list`: a sender's bug, or somebody substitutes bodies",
    ),
    "ledger_unavailable": Refusal(
        "PostgreSQL did not confirm within 2 s; whether it holds the event is open, the sender's retry tells",
        "see `hookonce doctor` and PostgreSQL; nothing of ours needs a restart",
    ),
    "key_unavailable": Refusal(
        "the sender's certificate or key set could not be fetched",
        "let the receivers reach the sender's key URL (https, no proxy); the log names it",
    ),
    "overloaded": Refusal(
        "this process holds as many large bodies as it may",
        "start more receivers if it happens for long",
    ),
    "internal_error": Refusal("a bug; the traceback is in the receiver's log", "report it"),
}
"""Other codes a sender may get; nothing of these deliveries is in `hookonce rejected list`."""

EXITS: Final[Mapping[str, str]] = {
    "OK": "it worked",
    "FAILURE": "it did not work; stderr says why",
    "USAGE": "the command line is wrong, or an id prefix has several matches",
    "PARTIAL": "part of it worked; the output says what did not",
    "NOT_FOUND": "no such event, source, handler or file",
    "DATABASE_UNREACHABLE": "PostgreSQL does not answer (EX_UNAVAILABLE)",
    "BAD_CONFIGURATION": "the configuration has mistakes, or the schema is behind (EX_CONFIG)",
    "INTERRUPTED": "stopped by Ctrl-C, or by no for an answer",
}
"""By the name in `receiver.cli.exits.Exit`."""

VARIABLES: Final[Mapping[str, str]] = {
    "DATABASE_URL": "PostgreSQL 14 or newer; wins over `[receiver] database_url`",
    "REDIS_URL": "Redis 7.0 or newer, or Valkey; wins over `[receiver] redis_url`",
    "HOOKONCE_CONFIG": "the configuration file; `hookonce.toml` in the current directory by default",
    "HOOKONCE_SECRET__<SOURCE>": "secrets, comma separated: makes the source, or replaces those it has",
    "HOOKONCE_HANDLERS": "handler modules, comma separated; wins over `[receiver] handlers`",
    "HOOKONCE_PUBLIC_URL": "where senders reach you, up to `/hooks/`; wins over `[receiver] public_url`",
    "HOOKONCE_ADMIN_TOKEN": "signs in to the dashboard; wins over `[admin] token`",
    "HOOKONCE_DATA": "where `hookonce dev` keeps its servers and secrets; `.hookonce` by default",
    "HOOKONCE_LOG_LEVEL": "`WARNING` by default; `INFO` has a line per delivery and per run",
    "HOOKONCE_BIND": "where `hookonce serve` listens; `0.0.0.0:$PORT` by default",
    "PORT": "the port of `hookonce serve`, where HOOKONCE_BIND says none; 8000 by default",
    "WEB_CONCURRENCY": "processes of `hookonce serve`; 2 by default",
    "GUNICORN_CMD_ARGS": "further options of gunicorn",
    "PYTHONPATH": "where handler modules are looked for, besides the current directory",
}
"""The environment, as far as people set it."""
