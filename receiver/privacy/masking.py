"""Keeps credentials out of what is kept: headers, URLs, and the beginnings of refused bodies."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from urllib.parse import unquote, unquote_plus

from hookonce.receiver.source import Source

MASK = "[secret]"
"""Stands for what is never kept, and for what is never shown."""
_SHORTEST_SECRET = 8
_quoted = json.encoder.encode_basestring_ascii
_CREDENTIAL = re.compile(
    r"authorization|cookie|token|secret|passw|passphrase|credential|bearer|(?<!signature-)jwt|assertion|oidc-data"
    r"|(api|auth|access|functions|subscription|private|client|master|shared)-?key|client-cert|^(x-)?auth$"
    r"|^hookonce-(origin|received-at|redacted)$"  # what a pull says, and no sender may
    r"|referer|(original|forwarded|rewrite)-(url|uri|path)"  # what proxies add: a URL may end in a secret
)


def kept_headers(headers: Mapping[str, str], source: Source | None) -> dict[str, str]:
    """Return a copy of headers for keeping, with credentials and anything that holds a secret of the source masked."""
    own = source.provider.credentials if source else ()
    kept = {name: MASK if name in own or is_credential(name) else value for name, value in headers.items()}
    for secret in source.secrets if source else ():
        if secret in "\n".join(kept.values()):
            kept = {name: MASK if secret in value else value for name, value in kept.items()}
    return kept


def kept_headers_as_json(headers: Mapping[str, str], source: Source) -> str:
    """Return what `kept_headers` returns, as `json.dumps` would spell it, at a quarter of its cost."""
    values = tuple(headers.values())
    together = "\n".join(values)
    if any(secret in together for secret in source.secrets):
        values = tuple(kept_headers(headers, source).values())
    return _headers_form(tuple(headers), source.provider.credentials) % tuple(map(_quoted, values))


def masked_body(body: bytes, source: Source) -> bytes:
    """Mask the secrets of the source in a body that is kept although it was refused."""
    for secret in source.secrets:
        body = body.replace(secret.encode(), MASK.encode())
    return body


def mask_secrets(secrets: Iterable[str]) -> Callable[[str], str]:
    """Return what masks these in a text that is kept; what is too short to be told from other text stays.

    Of a secret of several lines each is masked by itself, too: it may be printed or logged line by line.
    """
    parts = {part for each in secrets for part in (each, *each.splitlines())}
    known = sorted((part for part in parts if len(part) >= _SHORTEST_SECRET), key=len, reverse=True)

    def masked(text: str) -> str:
        for secret in known:
            text = text.replace(secret, MASK)
        return text

    return masked


def masked_url(url: str, source: Source) -> str:
    """Mask parameters that hold a secret of the source, however it is spelled, and what is secret in its own URL."""
    if source.url and url.startswith(source.url):
        url = source.shown_url + url[len(source.url) :]
    path, mark, query = url.partition("?")
    if mark:
        url = path + mark + "&".join(_masked_parameter(part, source) for part in query.split("&"))
    return url


def _masked_parameter(part: str, source: Source) -> str:
    if not _holds_secret(part, source):
        return part
    name = part.partition("=")[0]
    return MASK if _holds_secret(name, source) else f"{name}={MASK}"


def _holds_secret(text: str, source: Source) -> bool:
    spellings = (unquote(text), unquote_plus(text))
    return any(secret in spelled for secret in source.secrets for spelled in spellings)


@lru_cache(maxsize=512)
def is_credential(name: str) -> bool:
    """Whether a name, in lower case and with hyphens, is that of a header or field that holds a credential."""
    return _CREDENTIAL.search(name) is not None


@lru_cache(maxsize=64)
def _headers_form(names: tuple[str, ...], credentials: tuple[str, ...]) -> str:
    """Return the JSON of headers with a place for each value, which a credential's does not fill."""
    mask = _quoted(MASK) + "%.0s"
    places = [mask if name in credentials or is_credential(name) else "%s" for name in names]
    keys = [_quoted(name).replace("%", "%%") for name in names]
    return "{" + ", ".join(f"{key}: {place}" for key, place in zip(keys, places, strict=True)) + "}"
