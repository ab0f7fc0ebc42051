"""Findings of `hookonce doctor` about brokers: whether streams, queues and exchanges are there, and may be used."""

import asyncio
from collections.abc import Iterator

from hookonce.receiver.cli.doctor.servers import Finding
from hookonce.receiver.config.addresses import Address
from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.config.settings import Settings
from hookonce.receiver.durations import format_duration
from hookonce.receiver.outbound.brokers import broker
from hookonce.receiver.outbound.brokers.port import Found, NotConfirmed


def forwards(settings: Settings) -> Iterator[Finding]:
    """Look at the place of each forward; one where retries last longer than the broker knows ids is warned of."""
    for forward in settings.forwards.values():
        check, retried = f"forward {forward.name}", forward.retries_last
        if forward.address is None:
            yield Finding("warn", check, f"{forward.to} is not set in this environment; a worker needs it")
        elif forward.address.kind == "https":
            yield Finding("ok", check, f"to {forward.address.shown}")
        elif isinstance(found := _looked(check, forward.address), Finding):
            yield found
        elif found.remembers is not None and found.remembers >= retried:
            yield Finding("ok", check, found.text)
        else:
            known = f"for {format_duration(found.remembers)} only" if found.remembers else "not at all"
            text = f"it knows ids {known}, and attempts go on for up to {format_duration(retried)}"
            yield Finding("warn", check, f"{found.text}; {text}: an event may come twice")


def consumers(settings: Settings) -> Iterator[Finding]:
    """Look at the place that each source with `from` takes its deliveries from."""
    for source in settings.sources.values():
        check = f"consumer {source.name}"
        if source.broker == "":
            text = "its from is not set in this environment; `hookonce consume` needs it"
            yield Finding("warn", check, text)
        elif source.broker:
            found = _looked(check, Address.parse(source.broker))
            if isinstance(found, Found):
                found = Finding("ok", check, f"{found.text}; authenticity: {source.authenticity}")
            yield found


def _looked(check: str, address: Address) -> Found | Finding:
    """Return the result of a look at an address, or the finding that it fails."""

    async def look() -> Found:
        there = broker(address)
        try:
            return await there.look()
        finally:
            await there.close()

    try:
        return asyncio.run(look())
    except (ConfigError, NotConfirmed) as error:
        return Finding("fail", check, str(error))
