"""The OpenAPI 3.1 document, made from the operations and their models."""

import json
import threading
from functools import cache
from importlib.metadata import version
from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from hookonce.receiver.api.problem import ProblemDetails
from hookonce.receiver.api.routes import OPERATIONS, Operation
from hookonce.receiver.desk.registry import Octets
from hookonce.receiver.endpoints import policy
from hookonce.receiver.ledger.rows import ResponseModel
from hookonce.receiver.web import problem_details

_REF = "#/components/schemas/{model}"
_ABOUT = """What the `hookonce` command line can do, for programs.

A token is made with `hookonce tokens create NAME --scope read`; scopes are `read`, `bodies`, `replay` and `admin`,
which includes the others; content (bodies, headers, URLs, results, what errors say, logs) is shown with `bodies` only.
Listings are newest first; `next` of a page is the `cursor` of the page after. A POST with an
`Idempotency-Key` is done once: for 24 hours the same request is answered with the stored result. Every refusal is
problem details (RFC 9457) whose `code` says what kind it is.
"""
_WHY = {
    400: "The body is no JSON, or comes where none is expected; or the query can't be read.",
    401: "No token, or one that is unknown, was revoked or has expired.",
    403: "The token lacks the scope.",
    404: "There is no such thing.",
    409: "The Idempotency-Key belongs to another request, or the state of things forbids it: `code` says which.",
    413: "The body is longer than 64 KiB.",
    415: "The body is not application/json, or is compressed.",
    422: "Something is not as described here; `errors` says what.",
    429: "The token's limit is used up; come back later.",
    503: "PostgreSQL or Redis does not answer, or too many requests are under way; come back later.",
}
_TEXT = {"type": "string"}
_HEADERS = {
    401: {"WWW-Authenticate": {"required": True, "schema": _TEXT}},
    429: {"Retry-After": {"required": True, "schema": {"type": "integer", "minimum": 1}}},
    503: {"Retry-After": {"required": True, "schema": {"type": "integer", "minimum": 1}}},
}
_IN_PROGRESS = {
    "description": "The same request is under way; ask again with the same key.",
    "headers": {"Retry-After": {"required": True, "schema": {"type": "integer", "minimum": 1}}},
    "content": {
        "application/json": {
            "schema": {
                "type": "object",
                "properties": {"status": {"const": "in_progress"}},
                "required": ["status"],
                "additionalProperties": False,
            }
        }
    },
}
_KEY: dict[str, Any] = {
    "name": policy.HEADER,
    "in": "header",
    "description": "Makes the request safe to repeat: any text of the client's, a UUID for example.",
    "schema": {"type": "string", "pattern": f"^{policy.HEADER_FORM}$"},
}


_making: Final = threading.Lock()


def document() -> bytes:
    """Return the document as JSON; it is made once a process, however many ask for it at first."""
    with _making:
        return made()


@cache
def made() -> bytes:
    """Make the document."""
    schemas = _schemas()
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation)
    return json.dumps(
        {
            "openapi": "3.1.0",
            "info": {"title": "hookonce", "version": version("hookonce"), "description": _ABOUT},
            "servers": [{"url": "/api/v1"}],
            "security": [{"token": []}],
            "paths": paths,
            "components": {
                "schemas": schemas,
                "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            },
        }
    ).encode()


def _schemas() -> dict[str, Any]:
    """Return the schemas of all bodies, of requests and of responses."""
    wanted: dict[type[BaseModel], JsonSchemaMode] = {ProblemDetails: "serialization"}
    for operation in OPERATIONS:
        if "body" in operation.inputs:
            wanted[operation.inputs["body"]] = "validation"
        answer = operation.action.answer
        if answer is not None and issubclass(answer, ResponseModel):
            wanted[answer] = "serialization"
    known, found = models_json_schema(list(wanted.items()), ref_template=_REF)
    names = {each["$ref"].rpartition("/")[2]: model.__name__ for (model, _), each in known.items()}
    return {names.get(name, name): schema for name, schema in found["$defs"].items()}


def _operation(operation: Operation) -> dict[str, Any]:
    summary, _, description = operation.action.about.partition("\n")
    made: dict[str, Any] = {
        "operationId": operation.name,
        "summary": summary.rstrip("."),
        "parameters": _parameters(operation),
        "responses": {str(status): shown for status, shown in _responses(operation).items()},
    }
    if description.strip():
        made["description"] = description.strip()
    if operation.action.scope:
        made["security"] = [{"token": [operation.action.scope.value]}]
    if "body" in operation.inputs:
        schema = {"$ref": _REF.format(model=operation.inputs["body"].__name__)}
        made["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    return made


def _parameters(operation: Operation) -> list[dict[str, Any]]:
    found = []
    for role in ("path", "query"):
        if role in operation.inputs:
            schema = operation.inputs[role].model_json_schema(mode="validation")
            required = schema.get("required", ())
            for name, wanted in schema["properties"].items():
                found.append(
                    {"name": name, "in": role, "required": name in required, **_parameter(wanted, schema)}
                )
    if operation.method == "POST":
        found.append(_KEY)
    return found


def _parameter(wanted: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """Return schema and description of a parameter; it is sent or left out, but never null."""
    given = {name: value for name, value in wanted.items() if name not in {"title", "anyOf", "description"}}
    choices = [choice for choice in wanted.get("anyOf", ()) if choice.get("type") != "null"]
    if given.get("default", ...) is None:
        del given["default"]
    if len(choices) == 1:
        given |= choices[0]
    elif choices:
        given["anyOf"] = choices
    if "$ref" in given:
        given |= schema["$defs"][given.pop("$ref").rpartition("/")[2]]
    described = {"description": wanted["description"]} if "description" in wanted else {}
    return {"schema": given, **described}


def _responses(operation: Operation) -> dict[int, dict[str, Any]]:
    found: dict[int, dict[str, Any]] = {operation.status: _success(operation)}
    refusals = [400, 401, 403, 404, 413, 415, 422, 429, 503]
    if operation.method == "POST":
        found[202] = _IN_PROGRESS
        refusals.append(409)
    if any("since" in model.model_fields for model in operation.inputs.values()):
        refusals.append(409)
    for status in sorted({*refusals}):
        schema = {"$ref": _REF.format(model="ProblemDetails")}
        found[status] = {
            "description": _WHY[status],
            "content": {problem_details.CONTENT_TYPE: {"schema": schema}},
            **({"headers": _HEADERS[status]} if status in _HEADERS else {}),
        }
    return found


def _success(operation: Operation) -> dict[str, Any]:
    answer = operation.action.answer
    if answer is None:
        return {"description": "Done."}
    made: dict[str, Any] = {"description": (answer.__doc__ or "").partition("\n")[0]}
    if answer is Octets:
        made["content"] = {"application/octet-stream": {}}
    else:
        made["content"] = {"application/json": {"schema": {"$ref": _REF.format(model=answer.__name__)}}}
    if operation.method == "POST":
        made["headers"] = {
            policy.REPLAYED: {"description": "This is a stored result.", "schema": {"const": "true"}}
        }
    return made
