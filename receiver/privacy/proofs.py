"""Takes out of a delivery what proves it: no face shows a signature or a token, or a reader could send it again.

Where the proof stands is declared by a sender's scheme (`Sender.proof`). Of a header whose name is that of a signature
nothing is shown, whatever the source; of a JSON Web Token in a body its claims are, and its signature is not. The
ledger keeps all of it, for `reverify`.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Final

from hookonce.providers import Rejected
from hookonce.providers.kit.provider import Provider
from hookonce.providers.kit.reading import json_paths, multipart
from hookonce.providers.kit.signing.signed_urls import url_parameter, with_parameter
from hookonce.receiver.privacy.masking import MASK, kept_headers, masked_url
from hookonce.receiver.privacy.redaction import NOTHING, Paths, redacted
from hookonce.receiver.source import Source

OF_SIGNATURE: Final = re.compile(r"signature|hmac|digest")
_JWS: Final = re.compile(r"(ey[\w-]+\.[\w-]*)\.[\w-]+")
_HEADER, _QUERY, _WHOLE = "header:", "query:", "$"


def shown_headers(
    headers: Mapping[str, str], source: Source | None, provider: Provider | None
) -> dict[str, str]:
    """Return headers without credentials, secrets of the source, signatures and tokens."""
    places = _names(provider, _HEADER)
    kept = kept_headers(headers, source)
    is_proof = {name: name.lower() in places or OF_SIGNATURE.search(name.lower()) for name in kept}
    return {name: MASK if is_proof[name] else value for name, value in kept.items()}


def shown_url(url: str, source: Source | None, provider: Provider | None) -> str:
    """Return a URL whose query holds no secret of the source, no signature and no token."""
    for name in _names(provider, _QUERY):
        if url_parameter(url, name) is not None:
            url = with_parameter(url, name, MASK)
    return masked_url(url, source) if source else url


def shown_body(
    body: bytes,
    headers: Mapping[str, str],
    source: Source | None,
    provider: Provider | None,
    *,
    is_element: bool = False,
) -> bytes:
    """Return a body without what its source redacts now, and without signatures and tokens; `NOTHING` if unread.

    Of an element of a batch the places are looked for behind each of their steps.
    """
    own = {} if is_element else headers
    if source and source.redact:
        body = redacted(body, source.redact, own)
    paths = _paths(provider.proof if provider else (), is_element=is_element)
    if not paths or body == NOTHING:
        return body
    if any(not steps for steps in paths):
        return _JWS.sub(rf"\1.{MASK}", body.decode("latin-1")).encode("latin-1")
    found: list[object] = []

    def masked(value: object) -> str:
        found.append(value)
        token = _JWS.fullmatch(value) if isinstance(value, str) else None
        return f"{token[1]}.{MASK}" if token else MASK

    made = redacted(body, paths, own, masked)
    if made == NOTHING and multipart.is_multipart(body):
        with suppress(Rejected):
            return multipart.rewritten(body, lambda name, text: _field(name, text, paths))
    return made if found or made == NOTHING else body


def _field(name: str, text: bytes, paths: Paths) -> bytes:
    """Return what is shown of a field of a multipart form."""
    inner = [steps[1:] for steps in paths if steps[0] == name]
    if () in inner:
        return MASK.encode()
    return redacted(text, inner, {}, lambda _: MASK) if inner else text


def _names(provider: Provider | None, kind: str) -> set[str]:
    places: Iterable[str] = provider.proof if provider else ()
    return {place.removeprefix(kind) for place in places if place.startswith(kind)}


@lru_cache(maxsize=256)
def _paths(places: Sequence[str], *, is_element: bool) -> Paths:
    whole = [json_paths.parse(place) for place in places if place.startswith(_WHOLE)]
    behind = [steps[n:] for steps in whole for n in range(1, len(steps))] if is_element else []
    return [*whole, *behind]
