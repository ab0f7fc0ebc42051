"""The option `challenge`: a sender's question whether there is anybody at the URL, and where its text goes back.

A sender that asks by HEAD or GET, and takes any success for an answer, has no text.
"""

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from hookonce.providers import Delivery, Reason, Rejected, Reply
from hookonce.providers.kit.events.fields import EventView, Extractor, text_or_none
from hookonce.providers.kit.handshakes import echo, echo_header, json_reply, query_parameter, unsigned_probe
from hookonce.providers.kit.reading import json_paths
from hookonce.providers.kit.registry.options import Options
from hookonce.providers.kit.sender import Handshake

_EXPECTED: Final = "expected 'head', 'get', 'query:name', 'header:Name' or '$.path'"
_ASKED_BY: Final = {"head": ("HEAD",), "get": ("GET", "HEAD")}
_MAX_LENGTH: Final = 1000
_Answer = Callable[[Delivery], Reply | None]


class Authentic(Protocol):
    """A scheme that tells what is authentic without a clock."""

    def authentic(self, delivery: Delivery, secrets: Sequence[str]) -> object:
        """Raises: Rejected."""


def challenge(
    given: Options, name: str, event_id: Extractor | None, scheme: Authentic | None
) -> Handshake | None:
    """Return the handshake that the option tells, None if it is not given.

    A body that has an `event_id` is an event, whatever else is in it; without such a place only a body that
    holds the challenge and nothing else is a question. A caller need not prove anything, but must not try and fail.
    """
    answer = _answer(given, name, event_id)
    return _unless_forged(scheme, answer) if answer else None


def _answer(given: Options, name: str, event_id: Extractor | None) -> _Answer | None:
    where = given.text(name, "")
    if not where:
        return None
    kind, _, rest = where.partition(":")
    if where in _ASKED_BY:
        return lambda delivery: Reply() if delivery.method in _ASKED_BY[where] else None
    if kind == "query" and rest:
        return lambda delivery: echo(query_parameter(delivery, rest))
    if kind == "header" and rest:
        given.arriving(name, rest)
        return lambda delivery: echo_header(delivery, rest)
    try:
        steps = json_paths.parse(where)
    except ValueError:
        steps = ()
    if not steps or not all(isinstance(step, str) for step in steps):
        given.mistakes.append(f"{name} is {where!r}, {_EXPECTED}")
        return None
    return lambda delivery: _from_body(delivery, steps, event_id)


def _unless_forged(scheme: Authentic | None, answer: _Answer) -> Handshake:
    def handshake(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:
        try:
            if scheme:
                scheme.authentic(delivery, secrets)
        except Rejected as error:
            if error.reason == Reason.BAD_SIGNATURE:
                return None
        return answer(delivery)

    return handshake


def _from_body(
    delivery: Delivery, steps: tuple[json_paths.Step, ...], event_id: Extractor | None
) -> Reply | None:
    probe = unsigned_probe(delivery)
    text = json_paths.find(probe, steps)
    if not isinstance(text, str) or not 0 < len(text) <= _MAX_LENGTH:
        return None
    alone = json_paths.put(None, steps, text)
    is_event = (
        text_or_none(event_id, EventView(delivery, probe, probe)) is not None if event_id else probe != alone
    )
    return None if is_event else json_reply(alone)
