"""Takes deliveries from brokers: a batch of messages is stored in one statement, and acknowledged after its COMMIT.

What the ledger can't store now is given back to the broker, and nothing is fetched until the ledger answers. A message
that can't be read, or that was delivered again and again, becomes a dead letter of the ledger and is acknowledged.
"""

import asyncio
import hashlib
import logging
import random
import signal
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from datetime import timedelta
from typing import Final

from hookonce.providers import Delivery, Reason, Rejected
from hookonce.providers.kit.registry.message_ids import MESSAGE_ID
from hookonce.receiver import logs
from hookonce.receiver.config.addresses import Address
from hookonce.receiver.config.settings import Settings
from hookonce.receiver.failpoints import reach
from hookonce.receiver.intake.load import OverLimit
from hookonce.receiver.intake.pipeline import Intake
from hookonce.receiver.intake.verification import Unproven
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.database.connections import LedgerUnavailable
from hookonce.receiver.outbound.brokers import broker
from hookonce.receiver.outbound.brokers.port import Broker, NotConfirmed, Taken
from hookonce.receiver.outbound.key_fetcher import KeyUnavailable
from hookonce.receiver.processes.waits import OnLoop, loop_threads
from hookonce.receiver.source import Source

log = logging.getLogger(__name__)

MOST: Final = 100
TRIES: Final = 5
"""Failures of a message in this process, after which it becomes a dead letter."""
DELIVERIES: Final = 25
"""Deliveries after which nothing is tried with a message: processes have died of it, or nobody settles it."""
PAUSE: Final = timedelta(seconds=5)
LONGEST_PAUSE: Final = 30.0
_COUNTED: Final = 10_000


class Consumer:
    """Takes the messages of one source."""

    def __init__(self, source: Source, intake: Intake, settings: Settings, waits: OnLoop) -> None:
        self._source = source
        self._intake = intake
        self._limit = source.body_limit(settings.max_body)
        self._ledger_url = settings.database_url
        self._waits = waits
        self._failures: Counter[str] = Counter()
        self._is_away = False
        self._said = {"source": source.name}

    async def run(self, place: Broker, stopping: asyncio.Event) -> None:
        """Take messages until told to stop; what is under way is settled then."""
        troubles = 0
        while not stopping.is_set():
            try:
                taken = await place.fetch(MOST)
                if troubles:
                    log.info("the broker answers again", extra=self._said)
                troubles = 0
                if taken:
                    await self._settle(place, taken)
            except Exception as error:  # noqa: BLE001  the consumers of other sources go on
                troubles += 1
                text = str(error) if isinstance(error, NotConfirmed) else type(error).__name__
                (log.debug if troubles > 1 else log.warning)("%s", text, extra=self._said)
                await place.close()  # else a broker would wait for what was taken and never settled
                await _rung(stopping, min(LONGEST_PAUSE, 2.0**troubles / 4) * random.uniform(0.5, 1))  # noqa: S311
            while self._is_away and not stopping.is_set():
                self._is_away = not await asyncio.to_thread(self._ledger_answers)
                await _rung(stopping, 0.5 if self._is_away else 0)
        await place.close()

    async def _settle(self, place: Broker, taken: Sequence[Taken]) -> None:
        """Take messages in, then acknowledge those that the ledger holds, and give back the rest."""
        is_held = await asyncio.gather(*map(self._take, taken))
        reach("messages.committed")
        if held := [each for each, is_in in zip(taken, is_held, strict=True) if is_in]:
            await place.acknowledge(held)
        if rest := [each for each, is_in in zip(taken, is_held, strict=True) if not is_in]:
            await place.give_back(rest, PAUSE)

    async def _take(self, message: Taken) -> bool:
        """Take one message in; return whether it need not come again."""
        delivery = delivery_of(self._source, message)
        own = message.id or hashlib.sha256(message.body).hexdigest()
        try:
            if why := self._never(message):
                return await self._bury(delivery, own, why, max(message.deliveries, self._fails(own)))
            await self._intake.take_in(self._source, delivery, self._waits)
        except (LedgerUnavailable, KeyUnavailable, OverLimit) as error:
            return self._given_back(error)
        except Exception as error:  # noqa: BLE001  whatever a body does with its reader
            return await self._failed(delivery, own, error, max(message.deliveries, self._fails(own)))
        self._failures.pop(own, None)
        return True

    def _never(self, message: Taken) -> Rejected | None:
        """Return why nothing is tried with a message, if so."""
        if (size := len(message.body)) > self._limit:
            return Rejected(Reason.TOO_LARGE, f"{size:,} bytes are more than max_body, {self._limit:,}")
        if message.deliveries > DELIVERIES:
            return Rejected(Reason.BAD_BODY, f"delivered {message.deliveries} times, and never settled")
        return None

    async def _failed(self, delivery: Delivery, own: str, error: Exception, times: int) -> bool:
        """Return whether a message that failed so often need not come again."""
        is_unproven = isinstance(error, Unproven)
        if isinstance(error, Rejected):
            why, is_final = error, not is_unproven and error.reason is not Reason.NO_SECRET
        else:
            why = Rejected(Reason.BAD_BODY, f"it failed {times} times: {type(error).__name__}")
            is_final = times >= TRIES
        if is_final:
            return await self._bury(delivery, own, why, times)
        return self._refused(why, times if is_unproven else 0)

    def _fails(self, own: str) -> int:
        if len(self._failures) > _COUNTED:
            self._failures.clear()
        self._failures[own] += 1
        return self._failures[own]

    async def _bury(self, delivery: Delivery, own: str, why: Rejected, times: int) -> bool:
        """Store a message as a dead letter, if its sender signed it; return whether it need not come again."""
        try:
            await asyncio.to_thread(self._intake.take_unreadable, self._source, delivery, own, why)
        except Unproven as unproven:
            return self._refused(unproven, times)
        except Exception as error:  # noqa: BLE001  a key may be missing: other sources go on
            return self._given_back(error)
        log.warning("a message became a dead letter: %s", why.reason.value, extra=self._said)
        return True

    def _refused(self, why: Rejected, times: int) -> bool:
        """Log that a message is not taken; return whether it came often enough to be given up."""
        is_over = times >= TRIES
        log.warning(
            "a message was %s: %s", "refused" if is_over else "given back", why.reason, extra=self._said
        )
        return is_over

    def _given_back(self, error: Exception) -> bool:
        """Log why a message comes again, and note where the ledger is away; return False."""
        self._is_away = self._is_away or isinstance(error, LedgerUnavailable)
        log.warning("a message was given back: %s", type(error).__name__, extra=self._said)
        return False

    def _ledger_answers(self) -> bool:
        try:
            with connections.connect(self._ledger_url):
                return True
        except LedgerUnavailable:
            return False


def delivery_of(source: Source, message: Taken) -> Delivery:
    """Return the delivery that a message is; its headers say its id at the broker."""
    headers = {name.lower(): value for name, value in message.headers.items()} | {MESSAGE_ID: message.id}
    return Delivery(source.provider.methods[0], source.url_of(), headers, message.body)


def run(settings: Settings, sources: Mapping[str, Source]) -> None:
    """Be a process that takes messages of sources, until SIGTERM or SIGINT. Raises as `consume`."""
    logs.configure()

    async def until_stopped() -> None:
        stopping, loop = asyncio.Event(), asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stopping.set)
        await consume(settings, sources, stopping)

    asyncio.run(until_stopped())


async def consume(settings: Settings, sources: Mapping[str, Source], stopping: asyncio.Event) -> None:
    """Take messages of sources until told to stop. Raises `ConfigError` where an extra is missing."""
    waits = OnLoop(*loop_threads())
    places = [(each, broker(Address.parse(each.broker or ""), each.name)) for each in sources.values()]
    with closing(Intake(settings)) as intake:
        running = [Consumer(each, intake, settings, waits).run(place, stopping) for each, place in places]
        await asyncio.gather(*running)


async def _rung(bell: asyncio.Event, seconds: float) -> None:
    """Wait, so long at most."""
    with suppress(TimeoutError):
        await asyncio.wait_for(bell.wait(), seconds)
