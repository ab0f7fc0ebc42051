"""Reads a request strictly: what is unknown, repeated, too long or too deep is refused, never passed over."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

from pydantic import ValidationError

from hookonce.providers import Rejected
from hookonce.providers.kit.reading.bodies import parse_json, text_of
from hookonce.receiver.api.problem import Mistake, Problem, unauthorized
from hookonce.receiver.api.routes import Operation
from hookonce.receiver.desk.models import RequestModel, mistakes, said_of
from hookonce.receiver.endpoints import policy
from hookonce.receiver.web.body import SMALL_BODY, MemoryBudget, Reservation, read_wsgi_body
from hookonce.receiver.web.request_headers import BODY_STATUS, bearer_token

MAX_BODY = SMALL_BODY
"""Bytes of a body."""
MAX_DEPTH = 16
MAX_PARAMETERS = 50
MAX_MISTAKES = 20
"""As many mistakes as are reported."""
IS_READ = "hookonce.is_read"
"""In the environment of a request whose body was read to its end."""
_MAX_SHOWN = 300

Environ = dict[str, Any]


def bearer(environ: Environ) -> str:
    """Return the token that a request presents. Raises `Problem`."""
    header = environ.get("HTTP_AUTHORIZATION")
    if not header:
        raise unauthorized("no token; send `Authorization: Bearer …`, see `hookonce tokens create`")
    token = bearer_token(header)
    if token is None:
        raise unauthorized("the header Authorization holds no bearer token", "invalid_request")
    return token


def body_of(environ: Environ) -> bytes:
    """Read the body, all of it. Raises `Problem`."""
    try:
        with Reservation(MemoryBudget(0)) as reservation:
            body = read_wsgi_body(environ, MAX_BODY, reservation)
    except Rejected as error:
        raise Problem(BODY_STATUS.get(error.reason, 400), error.detail) from None
    environ[IS_READ] = True
    return body


def key_of(environ: Environ) -> str | None:
    """Return the Idempotency-Key, whether it is written as a quoted string or bare. Raises `Problem`."""
    header = environ.get("HTTP_IDEMPOTENCY_KEY")
    if header is None:
        return None
    try:
        return policy.read_key(header)
    except policy.BadKey as error:
        raise _invalid([Mistake(detail=str(error), parameter=policy.HEADER, pointer=None)]) from None


def fingerprint(environ: Environ, body: bytes) -> bytes:
    """Digest what makes two requests the same one: method, path, query and body."""
    parts = [environ["REQUEST_METHOD"], environ["PATH_INFO"], environ.get("QUERY_STRING", "")]
    return hashlib.sha256("\n".join(parts).encode() + b"\n" + body).digest()


def inputs(
    operation: Operation, environ: Environ, path: Mapping[str, str], body: bytes
) -> dict[str, RequestModel]:
    """Read what an operation asks for, as its action takes it. Raises `Problem`."""
    found: dict[str, RequestModel] = {}
    if "path" in operation.inputs:
        try:
            found["which"] = operation.inputs["path"].model_validate(path)
        except ValidationError as error:
            raise Problem(404, said_of(mistakes(error, operation.inputs["path"]))) from None
    query = _query(environ)
    if "query" in operation.inputs:
        found["asked"] = _validated(operation.inputs["query"], query, in_body=False)
    elif query:
        raise _invalid([_mistake(name, "this operation has no parameters") for name in query])
    if "body" in operation.inputs:
        found["asked"] = _validated(operation.inputs["body"], _document(environ, body), in_body=True)
    elif body:
        raise Problem(400, "this operation takes no body")
    return found


def _query(environ: Environ) -> dict[str, str]:
    raw = environ.get("QUERY_STRING", "").encode("latin-1")
    try:
        pairs = parse_qsl(
            raw.decode(), keep_blank_values=True, errors="strict", max_num_fields=MAX_PARAMETERS
        )
    except ValueError:
        raise Problem(400, "the query is not percent-encoded UTF-8, or has too many parameters") from None
    repeated = {name for name, _ in pairs if sum(name == other for other, _ in pairs) > 1}
    if repeated:
        raise _invalid([_mistake(name, "given more than once") for name in sorted(repeated)])
    return dict(pairs)


def _document(environ: Environ, body: bytes) -> object:
    kind = environ.get("CONTENT_TYPE", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Problem(415, "expected a body of Content-Type application/json")
    try:
        text = text_of(body)
        parse_json(text)
    except Rejected as error:
        raise Problem(400, error.detail) from None
    document = json.loads(text, object_pairs_hook=_members)
    if _is_deep(document):
        raise Problem(400, f"the body is nested deeper than {MAX_DEPTH} levels")
    return document


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise Problem(400, "the body holds an object with one name twice")
    return found


def _is_deep(document: object) -> bool:
    level = [document]
    for _ in range(MAX_DEPTH):
        level = [
            inner
            for each in level
            if isinstance(each, dict | list)
            for inner in (each.values() if isinstance(each, dict) else each)
        ]
    return bool(level)


def _validated(model: type[RequestModel], document: object, *, in_body: bool) -> RequestModel:
    try:
        return model.model_validate(document)
    except ValidationError as error:
        found = mistakes(error, model)[:MAX_MISTAKES]
        raise _invalid(
            [_mistake(place if in_body or not place else str(place[0]), said) for place, said in found],
            said_of(found),
        ) from None


def _mistake(where: str | tuple[int | str, ...], detail: str) -> Mistake:
    if isinstance(where, str):
        return Mistake(detail=detail, pointer=None, parameter=where[:_MAX_SHOWN])
    parts = (str(part).replace("~", "~0").replace("/", "~1") for part in where)
    pointer = "#" + "".join(f"/{part}" for part in parts)
    shown = pointer.encode(errors="backslashreplace").decode()  # a client's key may hold lone surrogates
    return Mistake(detail=detail, pointer=shown[:_MAX_SHOWN], parameter=None)


def _invalid(mistakes: list[Mistake], detail: str = "") -> Problem:
    said = "; ".join(f"{each.parameter}: {each.detail}" for each in mistakes)
    return Problem(422, detail or said, errors=mistakes)
