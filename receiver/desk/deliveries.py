"""Deliveries as they may be shown: redacted and masked by the rules of now, and without what proves them."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from hookonce.providers import Reason
from hookonce.providers.kit.provider import Provider
from hookonce.providers.kit.registry import load
from hookonce.receiver.desk.content import handed_out
from hookonce.receiver.desk.registry import Desk
from hookonce.receiver.encryption import CannotDecrypt
from hookonce.receiver.intake.explain.causes import Explanation
from hookonce.receiver.intake.explain.proof import Proof, proof
from hookonce.receiver.intake.explain.rejection import explain_rejection
from hookonce.receiver.ledger import reasons
from hookonce.receiver.ledger.access.api_tokens import Scope
from hookonce.receiver.ledger.decryption import Body, StoredBody, decrypt_body
from hookonce.receiver.ledger.queries import body_search, event_details, rejected
from hookonce.receiver.ledger.queries.body_search import Found
from hookonce.receiver.ledger.queries.event_details import Detail, OtherBody, Run
from hookonce.receiver.ledger.rejected import Rejection
from hookonce.receiver.ledger.rows import as_text
from hookonce.receiver.ledger.withheld import AS_SHOWN
from hookonce.receiver.privacy.proofs import shown_body, shown_headers, shown_url
from hookonce.receiver.source import Source
from hookonce.receiver.vocabulary import REFUSALS


class ShownEvent(Detail):
    """An event as it may be shown; `prove` verifies its delivery again."""

    prove: Callable[[], Proof | None] = lambda: None

    @property
    def waits(self) -> str | None:
        """Why it is passed over although it may be due, in words."""
        return why_parked(self.event.parked, self.runs)


def why_parked(parked: str | None, runs: Sequence[Run]) -> str | None:
    """Return in words why an event is passed over; its runs tell those apart that share a word."""
    return reasons.why(parked, [run.waits_for for run in runs]).words if parked else None


def event(desk: Desk, number: int, *, as_it_goes_on: bool = False) -> ShownEvent | None:
    """Return everything known of an event, as it may be shown; see `event_details`."""
    found = event_details.detail(desk.connection, number, desk.settings.keyring, goes_on=as_it_goes_on)
    if found is None:
        return None
    (found,) = handed_out(desk, f"event {number}", [found])
    source, provider = sender(desk, found.event.source, found.event.provider)
    raw, came = found.body, found.event.received_at
    shown = {
        "body": raw and _body(raw, source, provider),
        "conflicts": [_other(each, source, provider) for each in found.conflicts],
        "prove": lambda: proof(source, came, raw),
    }
    return ShownEvent.model_validate(dict(found) | shown, context=AS_SHOWN)


def rejected_deliveries(desk: Desk, limit: int, **wanted: Any) -> list[Rejection]:  # noqa: ANN401  `rejected.Wanted`
    """Return rejected deliveries that were kept, newest first."""
    rows = rejected.rejected_deliveries(desk.connection, desk.settings.keyring, limit, **wanted)
    return _shown(desk, rows)


def rejected_delivery(desk: Desk, number: int) -> Rejection | None:
    """Return a rejected delivery; None where it is not kept any more."""
    found = rejected.rejected_delivery(desk.connection, desk.settings.keyring, number)
    return _shown(desk, [found])[0] if found else None


def _shown(desk: Desk, rows: list[Rejection]) -> list[Rejection]:
    found = handed_out(desk, "rejected deliveries", rows)
    for each in found:
        source, provider = sender(desk, each.source, "")
        if not each.unreadable:
            each.body_prefix = shown_body(each.body_prefix, each.headers, source, provider)
        each.headers = shown_headers(each.headers, source, provider)
        each.do = advice(each.reason)
    return found


def advice(reason: str) -> str | None:
    """Return what to do about deliveries that are rejected for a reason."""
    return REFUSALS[reason].do if reason in REFUSALS else None


def explained_rejection(desk: Desk, number: int) -> tuple[Rejection, Explanation] | None:
    """Return what is known of a rejected delivery, and why it was; that tells shapes and names of it, no content."""
    row = rejected.rejected_delivery(desk.connection, desk.settings.keyring, number)
    if row is None:
        return None
    source, whole = desk.settings.sources.get(row.source), row.with_content()
    if source is None or whole.unreadable:
        cause = whole.unreadable or "no source of this name is configured here"
        return row, Explanation(Reason(row.reason), row.detail, None, [], cause, "")
    return row, explain_rejection(desk.connection, desk.settings, source, whole)


def search(desk: Desk, *asked: Any, **bounds: Any) -> Found:  # noqa: ANN401  what `body_search.search` takes
    """Look into bodies; each page that opens sealed ones is noted. Raises: `Forbidden`."""
    desk.require(Scope.BODIES)
    found = body_search.search(desk.connection, desk.settings.keyring, *asked, **bounds)
    if found.sealed:  # on every page: a first one may begin at any cursor
        place = "a text in bodies" if asked[1].steps is None else "a place in bodies"
        desk.note("search", place)
    return found


def pulled(desk: Desk, stored: StoredBody, provider: str) -> tuple[Body, bool] | None:
    """Return what leaves of an event that is pulled, and whether its bytes are others than those that are stored.

    Its pull is in the audit. None where it can't be opened. Raises: `Forbidden`.
    """
    desk.require(Scope.BODIES)
    body = decrypt_body(desk.settings.keyring, stored)
    if body is None or body.unreadable:
        return None
    shown = _body(body, *sender(desk, stored.source, provider))
    return shown, shown.body != bytes(body.body)


def sender(desk: Desk, source: str, provider: str) -> tuple[Source | None, Provider | None]:
    """Return the source as it is configured now, and its adapter; of one that is no more, the adapter alone."""
    known = desk.settings.sources.get(source)
    if known is not None:
        return known, known.provider
    try:
        return None, load(provider, desk.settings.provider_places) if provider else None
    except (LookupError, ValueError):
        return None, None


def _body(body: Body, source: Source | None, provider: Provider | None) -> Body:
    content = body.content
    if not isinstance(content, CannotDecrypt):
        content = shown_body(bytes(content), body.headers, source, provider, is_element=body.is_element)
    headers, url = shown_headers(body.headers, source, provider), shown_url(body.url, source, provider)
    return replace(body, url=url, headers=headers, content=content, sent=None, coding="")


def _other(row: OtherBody, source: Source | None, provider: Provider | None) -> OtherBody:
    shown: dict[str, Any] = {"headers": shown_headers(row.headers, source, provider)}
    if not row.unreadable:
        body = shown_body(row.octets, row.headers, source, provider)
        shown |= {"bytes": len(body)} | as_text(body)
    return row.model_copy(update=shown)
