"""The vocabulary that operators see: terms, statuses, reasons of a rejection, exit codes, environment variables.

The reference pages are written from it, and whoever shows one of these words may show its meaning. The order is
that of an event's life, or of a delivery's checks.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from hookonce.providers import Reason
from hookonce.receiver.ledger import reasons
from hookonce.receiver.ledger.states import EventStatus, RunStatus

TERMS: Final[Mapping[str, str]] = {
    "sender": "whoever delivers webhooks to you: Stripe, GitHub, a partner",
    "provider": "the module that knows one kind of sender: how it signs, and where its events have id and type",
    "source": "one place that sends to you: a name, its URL `/hooks/<name>`, a provider, and secrets",
    "delivery": "one HTTP request of a sender; an event may be delivered many times",
    "rejected": "of a delivery: refused, because it is not authentic; noted with its reason",
    "unreadable": "type of an event that is genuine and that its provider could not read: kept whole, dead, handled by "
    "no handler until `hookonce replay --type unreadable` can read it",
    "quarantine": "where rejected deliveries are kept whole, if the source asks for it, to be verified again later",
    "event": "what a delivery tells, kept once per source and id of the sender's",
    "issue": "failures of one handler at one place of your code: open, fixed, or ignored until a time",
    "ledger": "the tables in PostgreSQL that hold every event and every run: the truth",
    "window": "the ids that Redis remembers for a while, to answer retries fast; the ledger decides",
    "duplicate": "a delivery whose event the ledger has already; answered 200, and nothing runs again",
    "fingerprint": "the SHA-256 of a body as it was sent",
    "repeat": "an event with the body of an earlier one, under another id that its sender did not sign",
    "conflict": "another body under an id that is known",
    "handler": "a function of yours that `@on` or `@on_batch` registers; it gets the event, or many, and a transaction "
    '(with `tx="none"` it opens its own)',
    "run": "one handler on one event",
    "batch": "the runs of many events that one call of a handler does in one transaction (`@on_batch`); one that fails "
    "is split in half until the failing event is alone",
    "attempt": "one call of the handler within a run; a failed one is repeated after a pause",
    "claim": "a worker takes runs that are due, under one lease",
    "lease": "how long a claim belongs to its worker, which renews it while it lives; afterwards another takes it over",
    "drain": "a worker claims and runs what is due until nothing is left",
    "slot": "a place for one run in a worker; with `--concurrency` a worker has many, a thread each",
    "suspect": "a run that may have been under way when its worker died; not charged, and run by itself next",
    "sweep": "the process that finds what was forgotten, raises alerts, and prunes",
    "replay": "a new round of attempts on a stored event, under the same idempotency keys",
    "release": "to let a held event run",
    "pause": f"{reasons.nouns()} whose runs wait; deliveries are still taken",
    "parked": "an open event or run that is skipped while it is paused, its limit full, or it is to be run "
    "by itself",
    "limit": "how often, or how many at once, a handler may run (`@on(rate=, concurrency=)`); what is beyond it waits",
    "circuit breaker": "pauses a handler that fails by one error again and again, and tries one event now and then",
    "idempotency key": "the same for every attempt of a run and for its replays; hand it on with effects elsewhere",
    "step": "a part of a handler that is done once for its event (`event.step`); later attempts get what it gave",
    "stopped": "of a step: nobody knows whether it happened, and its handler asks for a person to decide",
    "alert": "something that should not be, raised once and resolved once by the sweep",
    "audit": "what operators changed: who, when, what",
}
"""The nouns and verbs of the commands and pages, in the order of a delivery's and then an event's life."""

EVENT_STATUSES: Final[Mapping[EventStatus, str]] = {
    EventStatus.RECEIVED: "in the ledger, and due: no worker has taken it yet, or its source is paused",
    EventStatus.RUNNING: "a worker has claimed it; at least one of its runs is under way, or waits there for a slot",
    EventStatus.WAITING: "a run of it is to come: after a failure, at a time it asked for, or when a pause, limit or "
    "batch lets it",
    EventStatus.DONE: "every run ended well",
    EventStatus.DEAD: "a run used up its attempts, or its handler gave up; or the event can't be read: "
    "needs a person",
    EventStatus.DISCARDED: "a person discarded what of it was dead, held or waiting, or erased it; "
    "a replay runs it after all",
    EventStatus.IGNORED: "no handler takes events of this type; workers look again at those of the last 15 minutes"
    " (or its source has `accept`, and it is of the other mode: then it stays ignored)",
    EventStatus.HELD: 'the same body came before under another, unsigned id, and the source has `repeats = "hold"`: '
    "or it was imported without `--run`: needs a person",
    EventStatus.LOST: "nothing is left of it but that it came: an error of ours, which `hookonce doctor` and the sweep "
    "look for; replay it",
}
"""Of an event; of its runs, running goes before waiting, waiting before dead, dead before done, done
before discarded."""

RUN_STATUSES: Final[Mapping[RunStatus, str]] = {
    RunStatus.WAITING: "not started yet, or to be tried again at its due time",
    RunStatus.RUNNING: "under a lease: an attempt is under way, or begins as soon as its worker has a slot for it",
    RunStatus.DONE: "the handler returned, and what it wrote is committed",
    RunStatus.DEAD: "attempts used up, the handler raised `GiveUp`, or it committed by itself",
    RunStatus.DISCARDED: "a person discarded it, or erased the event; a replay runs it after all",
}
"""The status of a run, of one handler on one event."""


class Refusal(NamedTuple):
    """The meaning of a refusal, and what the operator does about it."""

    means: str
    do: str


REFUSALS: Final[Mapping[str, Refusal]] = {
    Reason.UNKNOWN_SOURCE: Refusal(
        "No source has the name in the URL.",
        "If it was one of yours, compare the URL at the sender with `hookonce sources list`; a new source needs a "
        "restart of the receivers. Most of these are scanners.",
    ),
    Reason.BAD_METHOD: Refusal(
        "Webhooks are delivered by POST.",
        "A browser or a monitor asked. If it was the sender: a redirect before the receiver may make a GET of it.",
    ),
    Reason.UNSUPPORTED_ENCODING: Refusal(
        "The body has another Content-Encoding than gzip or deflate, or several.",
        "Choose gzip at the sender or the proxy, or turn compression off.",
    ),
    Reason.TOO_LARGE: Refusal(
        "The body is larger than `max_body`, by Content-Length or while it was read, or holds more"
        " (events, lists, parts) than any sender's.",
        "If it is genuine, raise `max_body` of the source, or in `[receiver]`.",
    ),
    Reason.TOO_SLOW: Refusal(
        "The body came too slowly: 8 s behind 16 KiB a second, or 60 s in all.",
        "Is the line to the sender or to a proxy slow? A proxy that buffers requests, as nginx does, waits instead.",
    ),
    Reason.NO_SECRET: Refusal(
        "The source has no secret, so nothing can be proved: our fault.",
        "Set the source's secret and restart the receivers. The sender was told to retry.",
    ),
    Reason.MISSING_HEADER: Refusal(
        "A header that the sender always sends was not there.",
        "Is this URL configured at the right sender, and does a proxy pass every header on? Scanners and browsers "
        "end here too; those can be left alone.",
    ),
    Reason.BAD_HEADER: Refusal(
        "A header that is part of the proof could not be read, or the request is not proper HTTP/1.1.",
        "Compare it with what the sender documents. A proxy that joins or rewrites headers is the usual cause.",
    ),
    Reason.BAD_SIGNATURE: Refusal(
        "No secret of the source made the signature that came.",
        "Copy the signing secret of this very endpoint again (not an API key, not that of the test mode), and see "
        "that nothing between sender and receiver changes the body. If neither helps, somebody else sent it.",
    ),
    Reason.STALE: Refusal(
        "It is rightly signed, but too long ago or in the future.",
        "`hookonce doctor` compares the clock. If it is right, the delivery was held up for long, or an old one was "
        "sent again.",
    ),
    Reason.BAD_BODY: Refusal(
        "The body was cut off, too slow, badly chunked, or is not what this sender sends.",
        "Look at its beginning. A proxy that changes bodies, another format (JSON or form), or another API version "
        "at the sender does this.",
    ),
}
"""By reason, of deliveries that `hookonce rejected list` shows."""

UNAVAILABLE: Final[Mapping[str, Refusal]] = {
    "conflict": Refusal(
        'An event id that is known came with another body, and the source has `conflicts = "reject"`.',
        "Look at `hookonce events conflicts`: a sender's bug, or somebody substitutes bodies.",
    ),
    "ledger_unavailable": Refusal(
        "PostgreSQL is away, or did not confirm within 8 s; whether it holds the event, the sender's retry tells.",
        "See `hookonce doctor` and PostgreSQL; nothing of ours needs a restart.",
    ),
    "key_unavailable": Refusal(
        "The sender's certificate or key set could not be fetched.",
        "Let the receivers reach the sender's key URL over https; the log names what failed.",
    ),
    "overloaded": Refusal(
        "This process holds as many large bodies as it may.", "Start more receivers if it happens for long."
    ),
    "internal_error": Refusal("A bug; the traceback is in the receiver's log.", "Report it."),
}
"""Other codes a sender may get; nothing of these deliveries is in `hookonce rejected list`."""

EXITS: Final[Mapping[str, str]] = {
    "OK": "it worked",
    "FAILURE": "it did not work; stderr says why",
    "USAGE": "the command line is wrong, or an id prefix has several matches",
    "PARTIAL": "part of it worked; the output says what did not",
    "NOT_FOUND": "no such event, source, handler or other name",
    "DATABASE_UNREACHABLE": "PostgreSQL does not answer (EX_UNAVAILABLE)",
    "LEDGER_LOCKED": "another session holds the ledger's tables for too long; try again (EX_TEMPFAIL)",
    "BAD_CONFIGURATION": "the configuration has mistakes, or the schema is behind (EX_CONFIG)",
    "INTERRUPTED": "stopped by Ctrl-C, or by no for an answer",
}
"""By the name in `receiver.cli.output.exits.Exit`."""

VARIABLES: Final[Mapping[str, str]] = {
    "DATABASE_URL": "PostgreSQL 14 or newer; wins over `[receiver] database_url`",
    "HOOKONCE_SCHEMA": "the schema of the ledger's tables; wins over `[receiver] schema`",
    "REDIS_URL": "Redis 7.0 or newer, or Valkey; wins over `[receiver] redis_url`",
    "WINDOW_REDIS_URL": "a Redis or Redis Cluster for window and limits; wins over `[receiver] window_redis_url`",
    "HOOKONCE_CONFIG": "the configuration file; `hookonce.toml` in the current directory by default",
    "HOOKONCE_SECRET__<SOURCE>": "secrets, comma separated: makes the source, or replaces those it has",
    "HOOKONCE_HANDLERS": "handler modules, comma separated; wins over `[receiver] handlers`",
    "HOOKONCE_CONCURRENCY": "runs at once per worker process; wins over `[receiver] concurrency`",
    "HOOKONCE_RELEASE": "the release of your code, told with failures; the git revision at a worker's start by default",
    "HOOKONCE_PUBLIC_URL": "where senders reach you, up to `/hooks/`; wins over `[receiver] public_url`",
    "HOOKONCE_CONSOLE": "where the console is, up to `/admin`, for `events open` and alerts; `public_url` by default",
    "HOOKONCE_ADMIN_TOKEN": "signs in to the dashboard; wins over `[admin] token`",
    "HOOKONCE_API_TOKEN": "the token of `hookonce mcp` on stdio, as `hookonce tokens create` printed it",
    "HOOKONCE_API_URL": "where `hookonce mcp` finds the admin API; `http://127.0.0.1:8000` by default",
    "HOOKONCE_TESTS": "`1` allows test events of every source, as `hookonce dev` does; else `tests = true` of a source",
    "HOOKONCE_DATA": "where `hookonce dev` keeps its servers and secrets; `.hookonce` by default",
    "HOOKONCE_LOG_LEVEL": "`WARNING` by default; `INFO` has a line per delivery and per run",
    "HOOKONCE_BIND": "where `hookonce serve` takes deliveries and commands, or `off`; `0.0.0.0:$PORT` by default",
    "HOOKONCE_DESK": "where it answers the console, the API and `/metrics`; wins over `[receiver] desk`",
    "PORT": "the port of `hookonce serve`, where HOOKONCE_BIND says none; 8000 by default",
    "WEB_CONCURRENCY": "processes of `hookonce serve`; by default half as many as cores, and two at least",
    "GUNICORN_CMD_ARGS": "further options of gunicorn",
    "NO_COLOR": "if it is set, nothing is colored",
    "OTEL_EXPORTER_OTLP_ENDPOINT": "where traces go; OpenTelemetry's other variables hold too",
    "PYTHONPATH": "where handler modules are looked for, besides the current directory",
}
"""The environment, as far as people set it."""
