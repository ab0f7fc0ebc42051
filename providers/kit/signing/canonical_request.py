"""Requests that are signed in a canonical form: method, path and query, the headers of a list, body."""

from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import quote

from hookonce.providers import Delivery
from hookonce.providers.kit.reading.bodies import header_of

_URI: Final = ";,/?:@&=+$-_.!~*'()#"
"""What JavaScript's encodeURI leaves as it is; its querystring.escape leaves less."""
_COMPONENT: Final = "-_.!~*'()"


def names_in(headers: Mapping[str, str], name: str) -> set[str]:
    """Return the names of headers that header `name` lists, separated by commas. Raises: Rejected(missing_header)."""
    return {each.strip().lower() for each in header_of(headers, (name,))[1].split(",")}


def canonical(delivery: Delivery, names: Iterable[str]) -> bytes:
    """Method, encoded path, `name:value` of the headers `names` (sorted) and the body, a line each.

    The query is percent-encoded over again and then the whole, so that its `=` becomes `%253D`.

    Raises: Rejected(missing_header) for a header that was not sent.
    """
    path, _, query = ("/" + delivery.url.partition("://")[2].partition("/")[2]).partition("?")
    query = quote(query.partition("?")[0], _COMPONENT, "utf-8", "surrogatepass")
    uri = quote(f"{path}?{query}" if query else path, _URI, "utf-8", "surrogatepass")
    given = (header_of(delivery.headers, (name,)) for name in sorted(names))
    listed = ";".join(f"{name}:{value.strip()}" for name, value in given)
    head = f"{delivery.method}\n{uri}\n{listed}\n"
    return head.encode("utf-8", "surrogatepass") + delivery.body
