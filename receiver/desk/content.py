"""Content: bodies, headers, URLs, results, what errors say and what handlers logged; handed out here and nowhere else.

A caller needs the scope `bodies`; without it rows come with why the content is withheld, and of an error its class,
code, file and line. What is handed out is redacted and masked by the rules of now, without what proves a delivery, and
noted in the audit once an hour for each subject.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final

from hookonce.providers import Reason
from hookonce.providers.kit.provider import Provider
from hookonce.providers.kit.registry import load
from hookonce.receiver.desk.registry import Desk, is_handed_out, with_errors
from hookonce.receiver.encryption import CannotDecrypt
from hookonce.receiver.intake.explain.causes import Explanation
from hookonce.receiver.intake.explain.proof import Proof, proof
from hookonce.receiver.intake.explain.rejection import explain_rejection
from hookonce.receiver.ledger import reasons, steps
from hookonce.receiver.ledger.access.api_tokens import Scope
from hookonce.receiver.ledger.decryption import Body, StoredBody, decrypt_body
from hookonce.receiver.ledger.queries import (
    body_search,
    event_details,
    failures,
    rejected,
    run_outcomes,
)
from hookonce.receiver.ledger.queries.body_search import Found
from hookonce.receiver.ledger.queries.event_details import Detail, Run
from hookonce.receiver.ledger.rows import MAX_ID
from hookonce.receiver.ledger.stats import issues
from hookonce.receiver.ledger.stats.issues import IssueRow
from hookonce.receiver.ledger.steps import Step
from hookonce.receiver.ledger.traceback_frames import Raised, Traceback
from hookonce.receiver.privacy.proofs import shown_body, shown_headers, shown_url
from hookonce.receiver.privacy.withheld import brief
from hookonce.receiver.source import Source

WITHHELD: Final = "it is content, which the scope `bodies` shows"


@dataclass(frozen=True, slots=True)
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
    known = {each.name: getattr(found, each.name) for each in fields(found)}
    if not is_handed_out(desk, f"event {number}"):
        return ShownEvent(**known | _withheld(found))
    source, provider = sender(desk, found.event.source, found.event.provider)
    raw = found.body
    known["body"] = raw and _body(raw, source, provider)
    known["conflicts"] = [_other(each, source, provider, "body") for each in found.conflicts]
    return ShownEvent(**known, prove=lambda: proof(source, found.event.received_at, raw))


def steps_of(desk: Desk, number: int) -> list[Step]:
    """Return the steps of an event."""
    return _steps(desk, steps.of_event(desk.connection, number, desk.settings.keyring), f"event {number}")


def stopped_steps(desk: Desk) -> list[Step]:
    """Return the steps that wait for a person."""
    return _steps(desk, steps.stopped(desk.connection, desk.settings.keyring), "stopped steps")


def outcomes_of(desk: Desk, events: Sequence[int]) -> dict[int, run_outcomes.Outcome]:
    """Return what the runs of listed events came to."""
    found = with_errors(desk, "errors of events", run_outcomes.outcomes(desk.connection, events))
    return {each.event: each for each in found}


def issue_rows(
    desk: Desk, state: issues.IssueState | None, handler: str | None, limit: int
) -> list[IssueRow]:
    """Return issues, those that failed last first."""
    return with_errors(desk, "issues", issues.listing(desk.connection, state, handler, limit))


def issue(desk: Desk, number: str) -> IssueRow | None:
    """Return an issue; None where none has the id."""
    found = issues.get(desk.connection, number)
    return with_errors(desk, f"issue {number}", [found])[0] if found else None


def latest_failure(desk: Desk, number: str) -> dict[str, Any] | None:
    """Return the newest failed attempt of an issue; None if none is kept."""
    found = failures.latest_of_issue(desk.connection, number, desk.settings.keyring)
    return found if found is None or is_handed_out(desk, f"issue {number}") else _failure(found)


def rejected_deliveries(desk: Desk, limit: int, **wanted: Any) -> list[dict[str, Any]]:  # noqa: ANN401  `rejected.Wanted`
    """Return rejected deliveries that were kept, newest first."""
    found = rejected.rejected_deliveries(desk.connection, desk.settings.keyring, limit, **wanted)
    if not found or is_handed_out(desk, "rejected deliveries"):
        return [_other(each, *sender(desk, each["source"], ""), "body_prefix") for each in found]
    return [each | {"headers": {}, "body_prefix": b"", "unreadable": WITHHELD} for each in found]


def as_it_came(desk: Desk, event: int) -> Body | None:
    """Return a delivery with what proves it, for the operator of this machine; None where it is not kept any more."""
    found = event_details.detail(desk.connection, event, desk.settings.keyring)
    return found.body if found else None


def rejected_as_they_came(desk: Desk, source: str, limit: int) -> list[dict[str, Any]]:
    """Return rejected deliveries of a source with what should prove them, for the operator of this machine."""
    return rejected.rejected_deliveries(desk.connection, desk.settings.keyring, limit, source=source)


def rejected_delivery(desk: Desk, number: int) -> dict[str, Any] | None:
    """Return a rejected delivery; None where it is not kept any more."""
    found = rejected_deliveries(desk, 1, before=min(number + 1, MAX_ID))
    return found[0] if found and found[0]["id"] == number else None


def explained_rejection(desk: Desk, number: int) -> tuple[dict[str, Any], Explanation] | None:
    """Return what is known of a rejected delivery, and why it was; that tells shapes and names of it, no content."""
    row = rejected.rejected_delivery(desk.connection, desk.settings.keyring, number)
    if row is None:
        return None
    source = desk.settings.sources.get(row["source"])
    if source is None or row["unreadable"]:
        cause = row["unreadable"] or "no source of this name is configured here"
        found = Explanation(Reason(row["reason"]), row["detail"], None, [], cause, "")
    else:
        found = explain_rejection(desk.connection, desk.settings, source, row)
    return {each: row[each] for each in ("id", "source", "reason")}, found


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


def filter_of(desk: Desk, told: Mapping[str, Any]) -> dict[str, Any]:
    """Return a filter as it is told of an act: what errors were to say is content."""
    is_told = "error" not in told or desk.allows(Scope.BODIES)
    return dict(told) if is_told else {**told, "error": WITHHELD}


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
    headers = shown_headers(body.headers, source, provider)
    return Body(shown_url(body.url, source, provider), headers, content, body.is_element)


def _other(
    row: dict[str, Any], source: Source | None, provider: Provider | None, column: str
) -> dict[str, Any]:
    headers = row["headers"]
    shown = {
        "headers": shown_headers(headers, source, provider),
        column: shown_body(bytes(row[column]), headers, source, provider),
    }
    return row | shown


def _withheld(found: Detail) -> dict[str, Any]:
    body = found.body and Body("", {}, CannotDecrypt(WITHHELD), found.body.is_element)
    return {
        "body": body,
        "runs": [
            run.model_copy(
                update={
                    "error": run.error and brief(run.error),
                    "result": None,
                    "unreadable": None if run.result is None else WITHHELD,
                }
            )
            for run in found.runs
        ],
        "failures": [_failure(each) for each in found.failures],
        "conflicts": [
            each | {"headers": {}, "body": b"", "unreadable": WITHHELD} for each in found.conflicts
        ],
        "steps": [_step(each) for each in found.steps],
        "logs": [log.model_copy(update={"lines": [], "unreadable": WITHHELD}) for log in found.logs],
    }


def _failure(row: dict[str, Any]) -> dict[str, Any]:
    frames = row["frames"] and Traceback(tuple(_raised(row["frames"].errors)))
    return row | {"error": brief(row["error"]), "frames": frames, "traceback": frames and frames.text}


def _raised(errors: Sequence[Raised]) -> Iterator[Raised]:
    for each in errors:
        inner = tuple(replace(one, errors=tuple(_raised(one.errors))) for one in each.inner)
        frames = tuple(replace(frame, local_values=()) for frame in each.frames)
        yield replace(each, said=brief(each.said), frames=frames, inner=inner)


def _steps(desk: Desk, found: list[Step], subject: str) -> list[Step]:
    return found if not found or is_handed_out(desk, subject) else [_step(each) for each in found]


def _step(row: Step) -> Step:
    return row.model_copy(
        update={
            "result": None,
            "note": row.note and brief(row.note),
            "unreadable": row.unreadable if row.result is None else WITHHELD,
        }
    )
