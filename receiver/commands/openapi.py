"""The description of all commands (OpenAPI 3.1), from the configuration."""

import json
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from hookonce.receiver.commands.requests import ASYNC, EXPECTED_VERSION, PREFIX, TEXT
from hookonce.receiver.config.commands import Command
from hookonce.receiver.endpoints.policy import HEADER, HEADER_FORM, REPLAYED

_TEXT = f"^{TEXT}$"
_PROBLEM = {
    "type": "object",
    "required": ["type", "title", "status", "code"],
    "properties": {
        "type": {"const": "about:blank"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "code": {"type": "string", "description": "what a program should look at"},
        "detail": {"type": "string"},
    },
}
_STATE = {
    "type": "object",
    "required": ["status"],
    "properties": {
        "status": {"enum": ["in_progress", "completed", "failed_retryable", "failed_final"]},
        "result": {"description": "what the command came to"},
        "refusal": {"type": "object"},
    },
}
_REFUSALS = {
    400: "no key, no JSON, or a header is missing",
    401: "no token of a client of this command",
    413: "the body is too large",
    415: "the body is not application/json",
    422: "failed for good",
    429: "too many requests; send it again later, with the same key",
    503: "failed for now, or nothing is known; send it again later, with the same key",
}


Models = Mapping[str, Mapping[str, Any]]
"""What the handlers of commands take and give, by their source (`receiver.ledger.handlers.models_of`)."""


def document(commands: Iterable[Command], models: Models = MappingProxyType({})) -> bytes:
    """Return the description as JSON."""
    paths: dict[str, Any] = {}
    schemas: dict[str, Any] = {"Problem": _PROBLEM, "State": _STATE}
    for command in commands:
        named = {}
        for role, schema in models.get(command.source, {}).items():
            inner = dict(schema)
            defined = inner.pop("$defs", {})
            schemas |= {f"{command.name}.{role}.{name}": each for name, each in defined.items()}
            schemas[f"{command.name}.{role}"] = inner
            named[role] = {"$ref": f"#/components/schemas/{command.name}.{role}"}
        paths[PREFIX + command.name] = {"post": _ask(command, named)}
        paths[f"{PREFIX}{command.name}/{{digest}}"] = {"get": _look(command)}
    return json.dumps(
        {
            "openapi": "3.1.0",
            "info": {"title": "Commands", "version": "1"},
            "security": [{"token": []}],
            "paths": paths,
            "components": {
                "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
                "schemas": schemas,
            },
        }
    ).encode()


def _ask(command: Command, named: Mapping[str, Any]) -> dict[str, Any]:
    said = "1 to 255 visible ASCII characters, in quotes if one is a comma; the same on every retry"
    wanted = [_header(HEADER, said, f"^{HEADER_FORM}$", required=True)]
    labels = [name for name in (command.tenant, command.actor) if name]
    wanted += [_header(name, "whose key it is", _TEXT, required=True) for name in labels]
    wanted += [_header(name, "part of what is asked for") for name in command.headers]
    wanted += [_header(EXPECTED_VERSION, "the version of what the command changes", _TEXT)]
    wanted += [_header("Prefer", f"`{ASYNC}`: do not wait for what the command comes to")]
    replayed = {REPLAYED: {"schema": {"const": "true"}, "description": "the answer was given before"}}
    answers: dict[str, Any] = {
        str(command.status): {
            "description": "done, now or before",
            "headers": replayed,
            "content": {"application/json": {"schema": named.get("gives", {})}},
        },
    }
    reused = 422 if command.dialect == "ietf" else 409
    refusals = dict(_REFUSALS)
    refusals[409] = "refused by what the command found"
    refusals[reused] = f"{refusals[reused]}, or the key belongs to another request"
    if command.dialect == "ietf" or command.in_progress == "409":
        refusals[409] += ", or in progress"
    else:
        headers = {name: {"schema": {"type": "string"}} for name in ("Location", "Retry-After")}
        content = {"application/json": {"schema": {"$ref": "#/components/schemas/State"}}}
        answers["202"] = {"description": "in progress", "headers": headers, "content": content}
    answers |= {str(status): _refusal(said) for status, said in sorted(refusals.items())}
    return {
        "operationId": f"ask_{command.name}",
        "parameters": wanted,
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": named.get("takes", {})}},
        },
        "responses": answers,
    }


def _look(command: Command) -> dict[str, Any]:
    digest = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/State"}}}
    refusals = {status: _REFUSALS[status] for status in (401, 429, 503)} | {
        404: "no such command of this client"
    }
    return {
        "operationId": f"look_{command.name}",
        "parameters": [{"name": "digest", "in": "path", "required": True, "schema": digest}],
        "responses": {"200": {"description": "its state", "content": content}}
        | {str(status): _refusal(said) for status, said in sorted(refusals.items())},
    }


def _header(name: str, said: str, pattern: str = "", *, required: bool = False) -> dict[str, Any]:
    schema = {"type": "string"} | ({"pattern": pattern} if pattern else {})
    return {"name": name, "in": "header", "required": required, "schema": schema, "description": said}


def _refusal(said: str) -> dict[str, Any]:
    schema = {"$ref": "#/components/schemas/Problem"}
    return {"description": said, "content": {"application/problem+json": {"schema": schema}}}
