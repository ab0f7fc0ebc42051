"""What an RQ job does, whose name is in Redis; and what a worker is made of: its configuration and its handlers."""

from collections.abc import Sequence
from functools import cache

from hookonce.jobs import commands
from hookonce.jobs.alerts import delivery
from hookonce.jobs.claimer import Claimer
from hookonce.jobs.handlers import Registry
from hookonce.jobs.registration import import_handlers
from hookonce.jobs.slots.single_slot import SingleSlot
from hookonce.providers.kit.registry import names
from hookonce.receiver.config.alerts import ALERTS_SOURCE as ALERTS
from hookonce.receiver.config.settings import Settings, load_settings, require_servers
from hookonce.receiver.failpoints import reach


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
    """Import the user's handlers, each for a source or provider there is, and add those that send alerts.

    Raises `ConfigError` and `HandlerError`.
    """
    registry = import_handlers(settings.handlers)
    ours = [ALERTS, *(command.source for command in settings.commands.values())]
    registry.require_places([*settings.sources, *ours], names(settings.provider_places))
    commands.register(registry, settings.commands)
    delivery.register(registry, settings.alerts)
    return registry


def perform(ids: Sequence[int]) -> int:
    """Do the RQ job in a worker of RQ's own that forks for each: all that is said of it is said before that ends."""
    claimer = process_claimer()
    try:
        return on_notification(claimer, ids)
    finally:
        claimer.finish()
        claimer.flush()


def on_notification(claimer: Claimer, ids: Sequence[int]) -> int:
    """Run the events that a notification names and what else is due; return the number of attempts made."""
    reach("job.begun")
    attempts = claimer.run_due(ids)
    reach("job.ended")
    return attempts
