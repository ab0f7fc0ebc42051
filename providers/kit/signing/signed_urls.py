"""URLs that are signed, and the ways in which a sender may write one."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from hashlib import sha256
from hmac import compare_digest
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from hookonce.providers import Delivery, Reason, Rejected

_PORTS: Final = {"https": "443", "http": "80"}
_MAX_PARAMETERS: Final = 100
_ORIGIN: Final = re.compile(r"(https?)://([^/?#]*?)(?::([0-9]{1,5}))?(?=[/?#]|\Z)")


def with_and_without_port(url: str) -> list[str]:
    """`url` without its port, and with one (its scheme's if it has none); only itself if it is not such a URL."""
    origin = _ORIGIN.match(url)
    if origin is None:
        return [url]
    scheme, host, port = origin.groups()
    rest = url[origin.end() :]
    return [f"{scheme}://{host}{rest}", f"{scheme}://{host}:{port or _PORTS[scheme]}{rest}"]


def verify_at_any_port(
    verify: Callable[[Delivery, Sequence[str], datetime], None],
    delivery: Delivery,
    secrets: Sequence[str],
    now: datetime,
) -> None:
    """Accept `delivery` if `verify` does so under its URL with or without the port. Raises: Rejected."""
    try:
        verify(delivery, secrets, now)
    except Rejected as error:
        others = [url for url in with_and_without_port(delivery.url) if url != delivery.url]
        if error.reason != Reason.BAD_SIGNATURE or not others:
            raise
        verify(replace(delivery, url=others[0]), secrets, now)


def query_as_form(delivery: Delivery, secrets: Sequence[str]) -> Delivery:  # noqa: ARG001
    """Return a delivery without a body with its query as one: `decode` of senders that may send by GET.

    The method itself does not decide: who signs URL and body may leave it out, and then it is anybody's.
    """
    query = delivery.url.partition("?")[2].encode("utf-8", "surrogatepass")
    return delivery if delivery.body else replace(delivery, body=query)


def url_parameter(url: str, name: str) -> str | None:
    """Return the first value of `name` in the query of `url`; None if there is none or the query can't be read."""
    try:
        pairs = parse_qsl(urlsplit(url).query, keep_blank_values=True, max_num_fields=_MAX_PARAMETERS)
    except ValueError:
        return None
    return next((value for key, value in pairs if key == name), None)


def expect_hash(delivery: Delivery, name: str) -> None:
    """Accept `delivery` if its URL has the SHA-256 of its body, in hex, as `name`, or has none.

    Raises: Rejected(bad_signature).
    """
    given, right = url_parameter(delivery.url, name), sha256(delivery.body).hexdigest().encode()
    if given is not None and not compare_digest(right, given.encode("utf-8", "surrogatepass")):
        raise Rejected(Reason.BAD_SIGNATURE, "the body is not the one whose hash is in the URL")


def with_parameter(url: str, name: str, value: str) -> str:
    """`url` with `name=value` as the last part of its query, instead of any other such."""
    base, _, query = url.partition("?")
    kept = [part for part in query.split("&") if part and part.partition("=")[0] != name]
    return base + "?" + "&".join([*kept, f"{name}={value}"])
