"""The event that a handler is given, made here for every kind of attempt.

Whatever an event can do beside holding its data is a capability (`jobs.event.Capability`): a class with its own module,
a method of `ReceivedEvent` that asks for it, and a maker here. Nothing else of an attempt knows of it.
"""

from collections.abc import Callable

from hookonce.jobs.attempts.ports import Blocks, Host
from hookonce.jobs.attempts.shared import Shared
from hookonce.jobs.event import STEPS, Capability, ReceivedEvent, received
from hookonce.jobs.handlers import Handler
from hookonce.jobs.steps import Steps, steps_of
from hookonce.receiver.ledger.runs import leases
from hookonce.receiver.ledger.runs.claimed import ClaimedRun

Maker = Callable[[Shared, ClaimedRun, Handler], Capability | None]
"""Makes a capability for one attempt; None where such a handler can have none."""


def _steps(shared: Shared, run: ClaimedRun, handler: Handler) -> Steps | None:
    if shared.steps is None or handler.batch is not None:
        return None
    return steps_of(run, handler, shared.steps, shared.sealing.keyring)


MAKERS: dict[str, Maker] = {STEPS: _steps}
"""The makers of capabilities, by name."""


def event_of(host: Host, run: ClaimedRun, handler: Handler, blocks: Blocks | None = None) -> ReceivedEvent:
    """Make the event of a run for its handler. Raises `BodyDropped` and `CannotDecrypt`."""
    shared, event = host.shared, run.event
    if shared.sealing.keyring.is_on:
        shared.sealing.require_key()
    body, key = event.body, event.key_id
    if body is None and event.url is not None and (found := leases.load_body(host.connection.ledger, event)):
        body, key = found
    if body is not None and key is not None:
        body = shared.sealing.opened(event, body, key)

    def make(name: str) -> Capability | None:
        return MAKERS[name](shared, run, handler)

    return received(run, body, shared.provider_of(event.source, event.provider), make, blocks)
