"""The functions of RQ's jobs, whose names are in Redis; and a worker's parts: its configuration and its handlers."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache

from hookonce.jobs.alerts import delivery
from hookonce.jobs.capabilities import waits
from hookonce.jobs.claimer import Claimer
from hookonce.jobs.configured import commands, forwards
from hookonce.jobs.handlers import Registry
from hookonce.jobs.registration import import_handlers
from hookonce.jobs.slots.single_slot import SingleSlot
from hookonce.providers.kit.registry import names
from hookonce.receiver.config.settings import Settings, load_settings, require_servers
from hookonce.receiver.config.suggestions import ALERTS_SOURCE as ALERTS
from hookonce.receiver.failpoints import reach
from hookonce.receiver.ledger.database.engines import AWAY
from hookonce.receiver.ledger.replay.events import replay_dead_run
from hookonce.receiver.redis import approximate

log = logging.getLogger(__name__)


def configured() -> tuple[Settings, Registry]:
    """Read this process's configuration, and import the user's handlers. Raises `ConfigError` and `HandlerError`."""
    settings = load_settings(need_secrets=False)
    require_servers(settings)
    return settings, handlers_of(settings)


@cache
def process_claimer() -> Claimer:
    """Make the claimer of a process that RQ has begun, from its configuration, once. Raises as `configured` does."""
    return SingleSlot(*configured())


def handlers_of(settings: Settings) -> Registry:
    """Import the user's handlers, each for a source or provider there is, and add those of ours.

    Raises `ConfigError` and `HandlerError`.
    """
    approximate.use(settings.window_url)
    registry = import_handlers(settings.handlers)
    forwards.register(registry, settings)
    ours = [ALERTS, *(command.source for command in settings.commands.values())]
    registry.require_places([*settings.sources, *ours], names(settings.provider_places))
    commands.register(registry, settings.commands)
    delivery.register(registry, settings.alerts)
    waits.register(registry)
    return registry


def perform(ids: Sequence[int]) -> int:
    """Do the RQ job in a worker of RQ's own that forks for each: all that is said of it is said before that ends."""
    with _ending(process_claimer()) as claimer:
        return on_notification(claimer, ids)


def requeue(event: int, handler: str, cycle: int) -> int:
    """Do the job of a dead run in a worker of RQ's own that forks for each."""
    with _ending(process_claimer()) as claimer:
        return on_requeued(claimer, event, handler, cycle)


@contextmanager
def _ending(claimer: Claimer) -> Iterator[Claimer]:
    delivery.ends_with_job = True
    try:
        yield claimer
    finally:
        delivery.ends_with_job = False
        claimer.finish()
        claimer.flush()


def on_requeued(claimer: Claimer, event: int, handler: str, cycle: int) -> int:
    """Replay a dead run that `rq requeue` names, and run it; return the number of attempts made.

    Only where `[receiver] rq_requeue` is true: whoever writes to Redis may do it.
    """
    if not claimer.settings.rq_requeue:
        log.warning("event %d was requeued by RQ and is left as it is: [receiver] rq_requeue is false", event)
        return 0
    try:
        with claimer.lent() as connection:
            is_replayed = replay_dead_run(connection, event, handler, cycle, "rq")
    except AWAY as error:
        log.warning("event %d was requeued by RQ and not replayed: %s", event, type(error).__name__)
        return 0
    return claimer.run_due([event]) if is_replayed else 0


def on_notification(claimer: Claimer, ids: Sequence[int]) -> int:
    """Run the events that a notification names and what else is due; return the number of attempts made."""
    reach("job.begun")
    attempts = claimer.run_due(ids)
    reach("job.ended")
    return attempts
