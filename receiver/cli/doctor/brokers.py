"""Findings of `hookonce doctor` about brokers: whether streams, queues and exchanges are there, and may be used."""

import asyncio
from collections.abc import Callable, Iterator

from hookonce.receiver.cli.doctor.servers import Finding
from hookonce.receiver.config.addresses import Address
from hookonce.receiver.config.forwards import Forward
from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.config.settings import Settings
from hookonce.receiver.durations import format_duration
from hookonce.receiver.outbound import brokers as kinds
from hookonce.receiver.outbound.brokers.port import Found, NotConfirmed


def forwards(settings: Settings) -> Iterator[Finding]:
    """Look at the place of each forward."""
    for forward in settings.forwards.values():
        check = f"forward {forward.name}"
        if forward.address is None:
            yield Finding("warn", check, f"{forward.to} is not set in this environment; a worker needs it")
        elif forward.address.kind == "https":
            yield Finding("ok", check, f"to {forward.address.shown}")
        else:
            try:
                found = kinds.publisher(forward.address)
            except ConfigError as error:
                yield Finding("fail", check, "; ".join(error.mistakes))
                continue
            yield _looked(check, found.look, forward)
            found.close()


def consumers(settings: Settings) -> Iterator[Finding]:
    """Look at the place that each source with `from` takes its deliveries from."""
    for source in settings.sources.values():
        check = f"consumer {source.name}"
        if source.broker == "":
            yield Finding(
                "warn", check, "its from is not set in this environment; `hookonce consume` needs it"
            )
        elif source.broker:
            try:
                found = asyncio.run(_found(Address.parse(source.broker), source.name))
                yield Finding("ok", check, f"{found.text}; authenticity: {source.authenticity}")
            except ConfigError as error:
                yield Finding("fail", check, "; ".join(error.mistakes))
            except NotConfirmed as error:
                yield Finding("fail", check, str(error))


async def _found(address: Address, name: str) -> Found:
    subscription = kinds.subscription(address, name)
    try:
        return await subscription.look()
    finally:
        await subscription.close()


def _looked(check: str, look: Callable[[], Found], forward: Forward) -> Finding:
    """Return the result of a look; it warns where retries last longer than the broker knows ids."""
    try:
        found = look()
    except NotConfirmed as error:
        return Finding("fail", check, str(error))
    retried, known = forward.retries_last, found.remembers
    if known is not None and known >= retried:
        return Finding("ok", check, found.text)
    for_how_long = f"for {format_duration(known)} only" if known else "not at all"
    return Finding(
        "warn",
        check,
        f"{found.text}; it knows ids {for_how_long}, and attempts go on for up to {format_duration(retried)}: "
        "an event may come twice",
    )
