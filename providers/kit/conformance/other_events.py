"""Makes another event of a delivery by changing one place of it and nothing else (`events.identity` says which).

A text that is JSON is looked into, wherever it stands: in a field of a form, in a claim of a token.
"""

import json
import re
from base64 import b64decode, b64encode, urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final
from urllib.parse import urlencode

from hookonce.providers import Delivery
from hookonce.providers.kit.conformance.unsigned_ids import next_character, pairs_of
from hookonce.providers.kit.events.identity import BODY
from hookonce.providers.kit.reading import json_paths
from hookonce.providers.kit.reading.multipart import is_multipart, parts_in

_TOKEN: Final = re.compile(r"(eyJ[\w-]+\.)(eyJ[\w-]+)(?=\.[\w-]*)")
_Steps = tuple[json_paths.Step, ...]


def with_other(sent: Delivery, place: str) -> Delivery | None:
    """Return the delivery with another value at `place`, None where there is no such place in it."""
    kind, _, name = place.partition(" ")
    change = {"header": _with_header, "query": _with_query, "claim": _with_claim, "xml": _with_xml}.get(kind)
    if change:
        return change(sent, name)
    if place == BODY:
        return replace(sent, body=_other_body(sent.body))
    return _with_body(sent, place)


def _with_header(sent: Delivery, name: str) -> Delivery | None:
    value = sent.headers.get(name)
    return None if value is None else replace(sent, headers={**sent.headers, name: _other(value)})


def _with_query(sent: Delivery, name: str) -> Delivery | None:
    url, _, query = sent.url.partition("?")
    pairs = pairs_of(query)
    if name not in dict(pairs):
        return None
    other = [(key, _other(value) if key == name else value) for key, value in pairs]
    return replace(sent, url=f"{url}?{urlencode(other)}")


def _with_claim(sent: Delivery, name: str) -> Delivery | None:
    """Return the delivery with another claim in its token, wherever that is."""
    found: list[bool] = []
    steps = json_paths.parse(f"$.{name}")

    def anew(match: re.Match[str]) -> str:
        claims = json.loads(urlsafe_b64decode(match[2] + "=="))
        found.append(bool(_at(claims, steps) != claims))
        told = json.dumps(_at(claims, steps)).encode()
        return match[1] + urlsafe_b64encode(told).decode().rstrip("=")

    headers = {key: _TOKEN.sub(anew, value) for key, value in sent.headers.items()}
    body = _TOKEN.sub(anew, sent.body.decode("latin-1")).encode("latin-1")
    return replace(sent, headers=headers, body=body) if any(found) else None


def _with_xml(sent: Delivery, path: str) -> Delivery | None:
    """Return the delivery with another text in an element; the XML is the body, or a field of a form in base64."""
    tag = path.rpartition("/")[2]
    form = re.compile(rf"(<{tag}[^>]*>)([^<]+)(</{tag}>)".encode())

    def anew(document: bytes) -> bytes:
        return form.sub(lambda found: found[1] + str(_other(found[2].decode())).encode() + found[3], document)

    body = anew(sent.body)
    if body == sent.body and (fields := dict(pairs_of(sent.body.decode("latin-1")))):
        body = urlencode({name: _through_base64(value, anew) for name, value in fields.items()}).encode()
    return replace(sent, body=body) if anew(sent.body) != sent.body or _differ(sent.body, body) else None


def _through_base64(text: str, change: Callable[[bytes], bytes]) -> str:
    try:
        document = b64decode(text.replace("\n", ""), validate=True)
    except ValueError:
        return text
    other = change(document)
    return text if other == document else b64encode(other).decode()


def _differ(body: bytes, other: bytes) -> bool:
    return pairs_of(body.decode("latin-1")) != pairs_of(other.decode("latin-1"))


def _with_body(sent: Delivery, path: str) -> Delivery | None:
    """Return the delivery with another value at a path of its body: JSON, JSON lines, a form, a multipart form."""
    steps = json_paths.parse(path)
    body = sent.body
    if is_multipart(body):
        parts = parts_in(body)
        other = _at(parts, steps)
        return replace(sent, body=_multipart(body, parts, other)) if other != parts else None
    document = _json(body) or _lines(body)
    data = document or dict(pairs_of(body.decode("latin-1")))
    other = _at(data, steps)
    written = json.dumps(other) if document else urlencode(other, encoding="latin-1")
    return replace(sent, body=written.encode()) if other != data else None


def _multipart(body: bytes, before: dict[str, str], after: dict[str, str]) -> bytes:
    for name, value in after.items():
        if value != before[name]:
            body = body.replace(before[name].encode(), value.encode(), 1)
    return body


def _lines(body: bytes) -> list[Any] | None:
    read = [_json(line) for line in body.split(b"\n") if line.strip()]
    return read if read and None not in read else None


def _json(body: bytes | str) -> Any:  # noqa: ANN401  any JSON
    try:
        return json.loads(body)
    except ValueError:
        return None


def _other_body(body: bytes) -> bytes:
    document = _json(body)
    if isinstance(document, dict | list) and document:
        return json.dumps(_everywhere(document)).encode()
    return str(_other(body.decode("latin-1"))).encode("latin-1")


def _at(data: Any, steps: _Steps) -> Any:  # noqa: ANN401  any JSON
    """Return a copy of `data` with another value at each of the places `steps`; as it is where there is none."""
    if not steps:
        return data if data is None else _other(data)
    step, rest = steps[0], steps[1:]
    if isinstance(data, str) and data[:1] in {"{", "["}:
        return json.dumps(other) if (other := _at(inner := _json(data), steps)) != inner else data
    if isinstance(data, dict) and step in data:
        return {**data, step: _at(data[step], rest)}
    if isinstance(data, list) and not isinstance(step, str):
        return [_at(each, rest) if step in (None, at) else each for at, each in enumerate(data)]
    return data


def _everywhere(data: Any) -> Any:  # noqa: ANN401  any JSON
    if isinstance(data, dict):
        return {key: _everywhere(value) for key, value in data.items()}
    if isinstance(data, list):
        return [_everywhere(each) for each in data]
    return data if data is None or isinstance(data, bool) else _other(data)


def _other(value: Any) -> Any:  # noqa: ANN401  any JSON
    """Return another value of the same kind: of a text its last letter or digit is another."""
    if isinstance(value, str):
        at = max((at for at, each in enumerate(value) if each.isascii() and each.isalnum()), default=-1)
        return value[:at] + next_character(value[at]) + value[at + 1 :] if at >= 0 else value + "0"
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    return {**value, "hookonce": 1} if isinstance(value, dict) else [*value, 0]
