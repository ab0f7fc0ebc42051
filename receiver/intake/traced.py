"""Deliveries as spans, and the claim, the store and the settle of each batch: imported only where traces are wanted.

A batch holds the deliveries of several requests. Its spans are in the trace of the first, and linked to the others.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.trace import Link, Span, SpanKind

from hookonce.providers import Delivery, Rejected
from hookonce.receiver.intake.deduplication import Deduplicator, DeliveryEvents, Unsettled
from hookonce.receiver.intake.intake_result import IntakeResult
from hookonce.receiver.intake.pipeline import Intake
from hookonce.receiver.ledger.database.connections import LedgerUnavailable
from hookonce.receiver.ledger.store import Stored
from hookonce.receiver.monitoring.otel import TRACEPARENT, W3C, parent_of, tracer
from hookonce.receiver.outbound.key_fetcher import KeyUnavailable
from hookonce.receiver.processes.waits import Waits
from hookonce.receiver.redis.dedup_window import WindowEntry
from hookonce.receiver.source import Source


class TracedDeduplicator(Deduplicator):
    """A deduplicator whose steps are spans of the batch's first delivery."""

    _batch: Sequence[DeliveryEvents] = ()

    async def commit(
        self, deliveries: Sequence[DeliveryEvents], waits: Waits
    ) -> list[list[Stored] | Exception]:
        """Store what is new, as `Deduplicator` does, and settle at once: so its span is one of this batch."""
        self._batch = deliveries
        answers = await super().commit(deliveries, waits)
        await self.rest(waits)
        return answers

    async def _ask_window(self, entries: Collection[WindowEntry], waits: Waits) -> dict[WindowEntry, Stored]:
        with self._span("claim", len(entries)) as span:
            found = await super()._ask_window(entries, waits)
            span.set_attribute("hookonce.known", len(found))
            return found

    async def _store(
        self, deliveries: Sequence[DeliveryEvents], found: dict[WindowEntry, Stored], waits: Waits
    ) -> tuple[dict[WindowEntry, Stored], dict[int, Exception]]:
        missing = sum(entry not in found for delivery in deliveries for entry in delivery.entries)
        if not missing:
            return await super()._store(deliveries, found, waits)
        with self._span("store", missing) as span:
            stored, errors = await super()._store(deliveries, found, waits)
            for verdict, number in Counter(row.verdict for row in stored.values()).items():
                span.set_attribute(f"hookonce.{verdict}", number)
            if errors:
                span.set_status(trace.StatusCode.ERROR)
            return stored, errors

    async def _settle(self, unsettled: Unsettled, waits: Waits) -> None:
        with self._span("settle", unsettled.events):
            await super()._settle(unsettled, waits)

    @contextmanager
    def _span(self, name: str, events: int) -> Iterator[Span]:
        parents = [parent_of(delivery.events[0].traceparent) for delivery in self._batch]
        first, *others = [each for each in parents if each is not None] or [trace.INVALID_SPAN_CONTEXT]
        with tracer().start_as_current_span(
            name,
            context=trace.set_span_in_context(trace.NonRecordingSpan(first)),
            links=[Link(each) for each in others],
            attributes={
                "hookonce.operation": "delivery",
                "hookonce.deliveries": len(self._batch),
                "hookonce.events": events,
            },
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            yield span


class TracedIntake(Intake):
    """An intake whose deliveries are spans; the events they bring keep the span they came with."""

    lane = TracedDeduplicator

    def is_quick(self, source: Source) -> bool:  # noqa: ARG002  as any intake
        """Say no: a span is of the task that takes a delivery in."""
        return False

    async def take_in(self, source: Source, delivery: Delivery, waits: Waits) -> IntakeResult:
        """Take one delivery in, as `Intake` does."""
        theirs = parent_of(delivery.headers.get(TRACEPARENT))
        with tracer().start_as_current_span(
            f"delivery {source.name}",
            context=trace.set_span_in_context(trace.INVALID_SPAN),
            kind=SpanKind.SERVER,
            links=[Link(theirs)] if theirs else (),
            attributes={"hookonce.source": source.name, "hookonce.provider": source.provider.name},
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                result = await super().take_in(source, delivery, waits)
            except Rejected as error:
                span.set_attribute("hookonce.outcome", error.reason)
                raise
            except (LedgerUnavailable, KeyUnavailable):
                span.set_attribute("hookonce.outcome", "unavailable")
                span.set_status(trace.StatusCode.ERROR)
                raise
            _describe(span, result)
            return result

    def trace(self) -> str | None:
        """Return the `traceparent` of the delivery under way."""
        carrier: dict[str, str] = {}
        W3C.inject(carrier)
        return carrier.get(TRACEPARENT)


def _describe(span: Span, result: IntakeResult) -> None:
    fresh = "handshake" if result.reply is not None else "accepted"
    span.set_attribute("hookonce.outcome", "duplicate" if result.is_duplicate else fresh)
    span.set_attribute("hookonce.events", len(result.events))
