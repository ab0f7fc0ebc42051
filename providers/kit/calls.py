"""Calls of a sender's API as values: the next request, and what an answer holds. No socket and no clock.

A module makes a `Listing` where its sender lists what it sent, and a `Renewal` where its subscriptions end by
themselves. Requests go to the `hosts` of these, and nowhere else.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

MAX_PAGE: Final = 100
"""Entries that a page is asked for, and may have."""
_ERROR: Final = re.compile(r"[\w. -]{1,60}", re.ASCII)
_SECONDS: Final = re.compile(r"\d{1,8}", re.ASCII)
REFUSED, FORBIDDEN, NOT_FOUND, GONE, TOO_MANY = 401, 403, 404, 410, 429


class CallFailed(Exception):  # noqa: N818  a state of the sender's, in one line
    """A call brought no usable answer; the text is one line without key or body, `after` how long to wait."""

    def __init__(self, text: str, *, status: int = 0, after: timedelta | None = None) -> None:
        super().__init__(text)
        self.status = status
        self.after = after


@dataclass(frozen=True, slots=True)
class Request:
    """One request of a sender's API; headers and body may hold a key."""

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes = field(default=b"", repr=False)


class Answer(NamedTuple):
    """The answer to a request; names of headers are lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Account(NamedTuple):
    """An account at a sender: the address that the source names (`api`), and the token that proves us there."""

    api: str
    token: str


class Listed(NamedTuple):
    """An event as its sender lists it: when it came to be there, and whether a delivery of it was answered 2xx.

    reference: what a redelivery names; is_first: no other entry of the list stands for the event before this one
    body: the event itself, where the list holds it
    """

    id: str
    type: str
    at: datetime
    reference: str = ""
    is_delivered: bool = False
    is_first: bool = True
    body: bytes = b""


class Page(NamedTuple):
    """One page of a list, newest first; `cursor` leads to the next, '' where there is none."""

    listed: Sequence[Listed]
    cursor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """How a sender's list is read.

    missed: the request for a page, by its cursor ('' for the first), back to a time
    read: a page; raises `CallFailed`
    redeliver: the request that has an event sent again; None where the list holds the events themselves
    token: as of `Renewal`; None where the key itself is the token
    api: the pattern of the addresses that a source may name; '' where there is one for all
    keeps: how long the sender lists what it sent
    per_hour, per_minute: calls that the sender allows; `write_cost`: as how many of the minute's a redelivery counts
    """

    missed: Callable[[Account, str, datetime], Request]
    read: Callable[[Answer], Page]
    keeps: timedelta
    per_hour: int
    per_minute: int
    redeliver: Callable[[Account, str], Request] | None = None
    token: Callable[[str, datetime], str | Request] | None = None
    read_token: Callable[[Answer], str] | None = None
    api: str = ""
    hosts: tuple[str, ...]
    write_cost: int = 1


class Wanted(NamedTuple):
    """A subscription that a source is to have: of what, with which address and secret, and for how long."""

    resource: str
    changes: str
    url: str
    secret: str
    lasts: timedelta


class Subscription(NamedTuple):
    """A subscription there is; `handle` is what its end names besides its id."""

    id: str
    expires_at: datetime
    handle: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewal:
    """How a sender's subscriptions are made and renewed.

    token: what requests are proven with, made of a source's key, or the request for it (`read_token` reads the answer)
    make: the request that makes a subscription with an id of ours, which a sender may replace by its own
    read: the subscription in an answer to `make` or `renew`; raises `CallFailed`
    renew: the request that has one live longer; None where another is made, and the old one ended by `end`
    resource: the pattern of what a source may name, `longest` how long a subscription may last
    """

    token: Callable[[str, datetime], str | Request]
    read_token: Callable[[Answer], str]
    make: Callable[[Wanted, str, str, datetime], Request]
    read: Callable[[Answer], Subscription]
    hosts: tuple[str, ...]
    resource: str
    lasts: timedelta
    renew: Callable[[Wanted, Subscription, str, datetime], Request] | None = None
    end: Callable[[Wanted, Subscription, str], Request] | None = None


def key_document(key: str, *names: str) -> dict[str, str]:
    """Return a key that is JSON, with texts of these names. Raises `CallFailed`."""
    try:
        found = json.loads(key)
    except ValueError:
        found = None
    if not isinstance(found, dict) or not all(isinstance(found.get(name), str) for name in names):
        raise CallFailed(f"the key can't be used; expected JSON with {', '.join(names)}")
    return {name: value for name, value in found.items() if isinstance(value, str)}


def signed(make: Callable[..., str], claims: Mapping[str, object], private_key: str) -> str:
    """Return a token (RS256) that a private key signs; `make` is the kit's (`jws`). Raises `CallFailed`."""
    try:
        return make(claims, private_key, "RS256")
    except ValueError:
        raise CallFailed("the key can't be used; expected an RSA private key in PEM") from None


def access_token(answer: Answer) -> str:
    """Return the token of an OAuth answer. Raises `CallFailed`."""
    return text_at(document(answer), "access_token", r"[\x21-\x7e]{1,8000}")


def bearer(token: str, **headers: str) -> dict[str, str]:
    """Return headers with a bearer token."""
    return {
        "authorization": f"Bearer {token}",
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }


def post_json(url: str, document: object, token: str, method: str = "POST") -> Request:
    """Return a request with a JSON body and a bearer token."""
    return Request(method, url, bearer(token, content_type="application/json"), json.dumps(document).encode())


def document(answer: Answer, expected: type[dict[str, Any]] | type[list[Any]] = dict) -> Any:  # noqa: ANN401  JSON
    """Return the JSON of a successful answer. Raises `CallFailed`."""
    expect_success(answer)
    try:
        found = json.loads(answer.body)
    except (ValueError, RecursionError):
        raise CallFailed("the answer is not whole JSON") from None
    if not isinstance(found, expected):
        raise CallFailed(f"the answer is no {expected.__name__}")
    return found


def expect_success(answer: Answer) -> None:
    """Raise `CallFailed` unless an answer is a success; the text says what to do."""
    status, after = answer.status, _retry_after(answer)
    if 200 <= status < 300:  # noqa: PLR2004  what success is
        return
    limited = status == TOO_MANY or (status == FORBIDDEN and (after or _is_spent(answer)))
    told = {
        REFUSED: "the key is refused: it is wrong, over, or was revoked",
        FORBIDDEN: "the key lacks a right",
        NOT_FOUND: "not found: the address is wrong, or the key may not see it",
        GONE: "gone",
    }.get(status, "expected 2xx")
    if limited:
        told, after = "its limit is reached", after or timedelta(minutes=15)
    elif 300 <= status < 400:  # noqa: PLR2004  HTTP's own class
        told = "a redirect, which is not followed"
    raise CallFailed(f"answered {status}{_code(answer)}: {told}", status=status, after=after)


def _is_spent(answer: Answer) -> bool:
    return answer.headers.get("x-ratelimit-remaining") == "0"


def _retry_after(answer: Answer) -> timedelta | None:
    found = _SECONDS.fullmatch(answer.headers.get("retry-after", ""))
    return timedelta(seconds=min(int(found[0]), 86400)) if found else None


def _code(answer: Answer) -> str:
    """Return the error's code where the sender gives one: a short word, never its message, which may quote a key."""
    try:
        error = json.loads(answer.body).get("error")
        code = error.get("code") or error.get("status") if isinstance(error, dict) else error
    except (ValueError, AttributeError, RecursionError):
        return ""
    return f" ({code})" if isinstance(code, str) and _ERROR.fullmatch(code) else ""


def moment(value: object) -> datetime:
    """Return a time of JSON: ISO 8601, or seconds since 1970. Raises `CallFailed`."""
    try:
        if isinstance(value, str):
            found = datetime.fromisoformat(re.sub(r"(\.\d{6})\d+", r"\1", value))
            return found if found.tzinfo else found.replace(tzinfo=UTC)
        return datetime.fromtimestamp(value, UTC)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError, OSError):
        raise CallFailed("the answer has a time that is none") from None


def text_at(found: Mapping[str, Any], name: str, pattern: str = r"[\x21-\x7e]{1,255}") -> str:
    """Return a text or number of a JSON object, as text that matches. Raises `CallFailed`."""
    value = found.get(name) if isinstance(found, dict) else None
    text = str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""
    if not re.fullmatch(pattern, text):
        raise CallFailed(f"the answer has no usable '{name}'")
    return text


def entries_of(found: object) -> list[Any]:
    """Return the entries of a page. Raises `CallFailed` for what is no list, or longer than was asked for."""
    if not isinstance(found, list):
        raise CallFailed("the answer has no list")
    if len(found) > MAX_PAGE:
        raise CallFailed(f"the page has {len(found)} entries; expected {MAX_PAGE} at most")
    return found
