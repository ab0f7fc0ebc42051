"""A client's request: who asks, under which key, for what: read strictly, and refused with what would be right."""

import hashlib
import hmac
import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from hookonce.providers import Rejected
from hookonce.receiver.config.commands import COMMAND, Command
from hookonce.receiver.endpoints import policy
from hookonce.receiver.idempotency.fingerprint import Request, canonical, is_json
from hookonce.receiver.idempotency.records import Key, Result, scope_of
from hookonce.receiver.ledger.store import NewEvent
from hookonce.receiver.web.body import Reservation, read_body
from hookonce.receiver.web.request import Request as HttpRequest
from hookonce.receiver.web.request_headers import BODY_STATUS, bearer_token

PREFIX = "/commands/"
MAX_LABEL = 255
EXPECTED_VERSION = "Expected-Version"
TEXT = r"[!-~]([ -~]{0,253}[!-~])?"
"""What a header of who asks, or of the version expected, may hold."""
_TEXT = re.compile(TEXT)
ASYNC = "respond-async"
"""A preference of RFC 7240: rather be told that it is in progress than wait."""
_SECONDS = re.compile(r"\d{1,6}")

Headers = Mapping[str, str]
"""By lower-case names."""


class Refused(Exception):  # noqa: N818  an answer
    """Ends a request with a refusal; `close` if a body may still be on its way."""

    def __init__(self, result: Result, *, close: bool = True) -> None:
        super().__init__(result.status)
        self.result = result
        self.close = close


@dataclass(frozen=True, slots=True)
class Asked:
    """A request of a client: the event it is, under the digest of its scoped key; `whose` key that is."""

    whose: tuple[str, ...]
    event: NewEvent

    @property
    def digest(self) -> str:
        """The name of the command in its URL; not to be guessed without its key."""
        return self.event.event_id


def client_of(command: Command, headers: Headers) -> str:
    """Return who asks. Raises `Refused`. Takes as long whoever it is."""
    token = bearer_token(headers.get("authorization", ""))
    presented = hashlib.sha256((token or "").encode()).digest()
    found = ""
    for client, tokens in command.auth.items():
        for known in tokens:
            if hmac.compare_digest(hashlib.sha256(known.encode()).digest(), presented):
                found = client
    if not found:
        detail = "send `Authorization: Bearer` with a token of this command's clients"
        refusal = policy.refusal(401, "unauthorized", detail)
        challenge = {"WWW-Authenticate": 'Bearer realm="hookonce"'}
        raise Refused(Result(401, {**refusal.headers, **challenge}, refusal.body))
    return found


def clients_of(commands: Iterable[Command], headers: Headers) -> list[Command]:
    """Return those of the commands that the client may ask for. Raises `Refused` where it is nobody's client."""
    found, refused = [], None
    for command in commands:
        try:
            client_of(command, headers)
        except Refused as error:
            refused = error
        else:
            found.append(command)
    if refused is not None and not found:
        raise refused
    return found


def wait_of(headers: Headers, longest: timedelta) -> timedelta:
    """Return how long a client wants to wait for its answer: not at all with `Prefer: respond-async` (RFC 7240).

    `respond-async, wait=1` is a second; without `respond-async` the wait is the command's.
    """
    preferred: dict[str, str] = {}
    for each in headers.get("prefer", "").split(","):
        name, _, value = each.partition(";")[0].partition("=")
        preferred.setdefault(name.strip().lower(), value.strip().strip('"'))
    if ASYNC not in preferred:
        return longest
    seconds = _SECONDS.fullmatch(preferred.get("wait", ""))
    return min(timedelta(seconds=int(seconds[0])), longest) if seconds else timedelta(0)


async def read(command: Command, client: str, request: HttpRequest, reservation: Reservation) -> Asked:
    """Return what a client asks for. Raises `Refused`."""
    headers = request.headers
    header = headers.get("idempotency-key")
    if header is None:
        raise Refused(policy.no_key())
    try:
        key = policy.read_key(header)
    except policy.BadKey as error:
        raise Refused(policy.no_key(str(error))) from None
    tenant, actor = (_label(name, headers) for name in (command.tenant, command.actor))
    expected = headers.get(EXPECTED_VERSION.lower())
    if expected is not None and not _TEXT.fullmatch(expected):
        raise Refused(policy.refusal(400, "bad_header", f"the header {EXPECTED_VERSION} holds no version"))
    kind = headers.get("content-type", "")
    body = await _body(request, kind, command.max_body, reservation)
    chosen = {name: headers.get(name.lower(), "") for name in (*command.headers, EXPECTED_VERSION)}
    asked = Request("POST", PREFIX + command.name, body, kind, headers=chosen, version=command.version)
    whole = Key(scope_of("command", command.name, client, tenant, actor), key)
    kept = {name.lower(): value for name, value in chosen.items() if value} | {"content-type": kind}
    names = {command.tenant.lower(): tenant, command.actor.lower(): actor, "idempotency-key": key}
    kept |= {name: value for name, value in names.items() if name}
    event = NewEvent(
        source=command.source,
        provider=COMMAND,
        event_id=whole.digest,
        type=command.name,
        account=account_of(client, tenant),
        fingerprint=asked.fingerprint(),
        id_is_signed=True,
        occurred_at=None,
        url=PREFIX + command.name,
        headers=json.dumps(kept),
        body=body,
    )
    return Asked((command.source, client, tenant, actor), event)


def account_of(client: str, tenant: str = "") -> str:
    """Return whose a command is, as its event's account."""
    return f"{client}/{tenant}"[:MAX_LABEL] if tenant else client


async def _body(request: HttpRequest, kind: str, limit: int, reservation: Reservation) -> bytes:
    if not is_json(kind):
        detail = "expected a body of Content-Type application/json"
        raise Refused(policy.refusal(415, "unsupported_media_type", detail))
    try:
        body = await read_body(request, limit, reservation)
    except Rejected as error:
        raise Refused(
            policy.refusal(BODY_STATUS.get(error.reason, 400), error.reason, error.detail)
        ) from None
    if canonical(body) is None or not _is_readable(body):
        detail = (
            "the body is not JSON, is nested too deeply, has an object with one name twice, or a number that is too "
            "large to be read"
        )
        raise Refused(policy.refusal(400, "bad_body", detail), close=False)
    return body


def _is_readable(body: bytes) -> bool:
    """Whether a handler can read a JSON body: no attempt could at thousands of digits, or would at 1e999999."""
    try:
        json.loads(body, parse_float=_finite)
    except (ValueError, RecursionError):
        return False
    return True


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("beyond the largest number")
    return number


def _label(name: str, headers: Headers) -> str:
    if not name:
        return ""
    value = headers.get(name.lower(), "").strip()
    if not _TEXT.fullmatch(value):
        raise Refused(policy.refusal(400, "bad_header", f"the header {name} is missing, or is no plain text"))
    return value
