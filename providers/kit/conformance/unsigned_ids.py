"""Whether the id of an event is covered by what the sender signs: change it, and see who notices.

Where an adapter has the id from is not asked but found out: every header, parameter of the URL and value of the body
is changed in turn, and the headers that `events` looks for and that were not sent are added. A change that makes an
event of another id is a change of the id.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final
from urllib.parse import parse_qsl, quote_plus, urlencode

from hookonce.providers import Delivery, KeyNeeded, Rejected
from hookonce.providers.kit.conformance.cases import Case, expect
from hookonce.providers.kit.reading.multipart import is_multipart, parts_in
from hookonce.providers.kit.signing.verdict import FORM

_MADE_UP: Final = ("evt_made_up", "4711")
"""What is put where nothing stood: a text, and a number for those who want one."""
_KINDS: Final = ("application/json", FORM, "text/plain")
_XML_TEXT: Final = re.compile(r">([^<>]*\w[^<>]*)<")


def check_id_is_signed(case: Case) -> None:
    """No delivery with another id is accepted, unless the sender says that its ids are not signed."""
    if not case.is_genuine or not case.provider.id_is_signed:
        return
    place = unsigned_place(case)
    expect(place is None, f"accepted with another event id after {place}; say id_is_signed=False")


def unsigned_place(case: Case) -> str | None:
    """Return what can be changed of a genuine delivery so that its event has another id and it is still accepted."""
    known = set(_ids(case, case.delivery))
    for place, changed in changes(case):
        if set(_ids(case, changed)) - known and case.verdict(changed) is None:
            return place
    return None


def _ids(case: Case, delivery: Delivery) -> list[str]:
    """Return the ids of its events, none for what can't be read."""
    try:
        return [event.id for event in case.events(delivery)]
    except (Rejected, KeyNeeded):
        return []


def changes(case: Case) -> Iterator[tuple[str, Delivery]]:
    """Return deliveries with one thing changed, each with what that is."""
    delivery = case.delivery
    yield from _other_headers(case)
    for at, (name, value) in enumerate(pairs := pairs_of(delivery.url.partition("?")[2])):
        for other in _others(value):
            query = urlencode([*pairs[:at], (name, other), *pairs[at + 1 :]])
            yield f"a change of query parameter {name}", _with_query(delivery, query)
    yield "an addition to the query", _with_query(delivery, urlencode([*pairs, ("made", "up")]))
    if joined := "".join(name + value for name, value in sorted(pairs_of(delivery.body.decode("latin-1")))):
        moved = replace(delivery, body=b"", url=delivery.url + joined)
        yield "the fields of the body moved into the URL", moved
    for method in case.provider.methods:
        yield f"a change of the method to {method}", replace(delivery, method=method)
    for place, body in _other_bodies(delivery.body):
        yield place, replace(delivery, body=body)


def _other_headers(case: Case) -> Iterator[tuple[str, Delivery]]:
    delivery, looked = case.delivery, _Looked(case.delivery.headers)
    _ids(case, replace(delivery, headers=looked))
    for name, value in delivery.headers.items():
        for other in _others(value):
            headers = {**delivery.headers, name: other}
            yield f"a change of header {name}", replace(delivery, headers=headers)
        rest = {key: text for key, text in delivery.headers.items() if key != name}
        yield f"the loss of header {name}", replace(delivery, headers=rest)
    for name in sorted(looked.for_names - delivery.headers.keys()):
        for other in _MADE_UP:
            yield (
                f"the addition of header {name}",
                replace(delivery, headers={**delivery.headers, name: other}),
            )
    for kind in _KINDS:
        yield (
            f"the content type {kind}",
            replace(delivery, headers={**delivery.headers, "content-type": kind}),
        )


class _Looked(dict[str, str]):
    """Headers that remember which of them somebody looked for."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        super().__init__(headers)
        self.for_names: set[str] = set()

    def __contains__(self, name: object) -> bool:
        self.for_names.add(str(name))
        return super().__contains__(name)

    def __getitem__(self, name: str) -> str:
        self.for_names.add(name)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:  # noqa: ANN401  as in Mapping
        """As in any mapping."""
        self.for_names.add(name)
        return super().get(name, default)


def _with_query(delivery: Delivery, query: str) -> Delivery:
    return replace(delivery, url=f"{delivery.url.partition('?')[0]}?{query}")


def pairs_of(text: str) -> list[tuple[str, str]]:
    """Return the fields of a form or of a query, none of what is neither."""
    try:
        return parse_qsl(text, keep_blank_values=True, encoding="latin-1")
    except ValueError:
        return []


def _other_bodies(body: bytes) -> Iterator[tuple[str, bytes]]:
    """Bodies with one value changed, of whatever kind they are, or something added."""
    text = body.decode("latin-1")
    if is_multipart(body):
        for name, value in parts_in(body).items():
            for where, other in _other_texts(value):
                yield f"a change of {name}{where} in the body", body.replace(value.encode(), other.encode())
    elif text.lstrip()[:1] == "<":
        for found in _XML_TEXT.finditer(text):
            for other in _others(found[1]):
                spelled = text[: found.start(1)] + other + text[found.end(1) :]
                yield "a change of a text of the XML", spelled.encode("latin-1")
    elif (document := _document(text)) is not None:
        for where, other in _other_documents(document, "$"):
            yield f"a change of {where} in the body", json.dumps(other, separators=(",", ":")).encode()
    else:
        yield from ((place, form.encode()) for place, form in _other_forms(pairs_of(text)))
    yield "an addition to the body", body + b" "


def _other_forms(pairs: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Return a form with one field changed, or spelled otherwise, which a sender that signs the fields may take."""
    if not pairs:
        return
    for at, (name, value) in enumerate(pairs):
        for where, other in _other_texts(value):
            form = urlencode([*pairs[:at], (name, other), *pairs[at + 1 :]], encoding="latin-1")
            yield f"a change of field {name}{where} in the body", form
    in_order = sorted(pairs)
    for at, ((name, value), (after, held)) in enumerate(pairwise(in_order)):
        one = [*in_order[:at], (name, value + after + held), *in_order[at + 2 :]]
        yield f"field {after} shifted into {name} before it", urlencode(one, encoding="latin-1")
        two = [*in_order[:at], (name, value[:-1]), (value[-1:] + after, held), *in_order[at + 2 :]]
        yield f"the end of {name} shifted into {after} behind it", urlencode(two, encoding="latin-1")
    yield "a change of the fields' order", urlencode(pairs[::-1], encoding="latin-1")
    yield "a repetition of a field", urlencode([*pairs, pairs[-1]], encoding="latin-1")
    yield (
        "another spelling of the fields",
        "&".join(
            f"{quote_plus(name, encoding='latin-1')}={''.join(f'%{ord(each):02x}' for each in value)}"
            for name, value in pairs
        ),
    )


def _other_texts(text: str) -> Iterator[tuple[str, str]]:
    """Other texts for a field of a form, which may hold a JSON document: each with what is changed in it."""
    document = _document(text)
    if document is None:
        yield from (("", other) for other in _others(text))
    else:
        yield from ((f" ({where})", json.dumps(other)) for where, other in _other_documents(document, "$"))


def _document(text: str) -> Any:  # noqa: ANN401  a JSON object or list
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict | list) else None


def _other_documents(document: Any, place: str) -> Iterator[tuple[str, Any]]:  # noqa: ANN401  any JSON
    """Copies of a JSON document in which one text or number is another."""
    if isinstance(document, dict):
        for key, value in document.items():
            for where, changed in _other_documents(value, f"{place}.{key}"):
                yield where, {**document, key: changed}
    elif isinstance(document, list):
        for at, value in enumerate(document):
            for where, changed in _other_documents(value, f"{place}[{at}]"):
                yield where, [*document[:at], changed, *document[at + 1 :]]
    elif isinstance(document, str):
        yield from ((place, other) for other in _others(document))
    elif isinstance(document, int | float) and not isinstance(document, bool):
        yield place, document + 1


def _others(text: str) -> Iterator[str]:
    """Texts of the same form as `text`, and one of another."""
    places = [at for at, each in enumerate(text) if each.isascii() and each.isalnum()]
    for at in dict.fromkeys(places[:1] + places[-1:]):
        yield text[:at] + next_character(text[at]) + text[at + 1 :]
    yield _MADE_UP[0]


def next_character(character: str) -> str:
    """Another digit for a digit, another letter that is a hex digit for a letter."""
    if character.isdigit():
        return str((int(character) + 1) % 10)
    other = "b" if character.lower() == "a" else "a"
    return other.upper() if character.isupper() else other
