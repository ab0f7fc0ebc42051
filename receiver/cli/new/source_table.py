"""A source of a generic provider as it stands in hookonce.toml: for senders that need no module."""

import json
from collections.abc import Mapping
from typing import Any

from hookonce.providers.kit import Timestamp
from hookonce.receiver.cli.new.guess import Guess

_PROVIDERS = {
    "Hmac": "hmac",
    "Jwt": "jwt",
    "Signed": "signed",
    "Token": "token",
    "StandardWebhooks": "standard_webhooks",
}


def source_table(name: str, known: Guess) -> str:
    """Return the table of a source called `name`, with a variable of the environment for its secret."""
    provider = _PROVIDERS[known.scheme]
    lines = [
        f"[sources.{name}]",
        f'provider = "{provider}"',
        f'secrets = ["env:{name.upper()}_WEBHOOK_SECRET"]',
    ]
    if known.scheme != "StandardWebhooks":
        lines.append(f"{provider} = {_inline(_options(known))}")
    return "\n".join(lines) + "\n"


def _options(known: Guess) -> dict[str, Any]:
    told = {"Token": _where, "Jwt": _of_token}
    scheme = told.get(known.scheme, dict)(known.arguments)
    return scheme | {key: _place(*place) for key, place in known.places.items()}


def _where(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options `in` and `prefix` of a token."""
    if arguments.get("header") == "authorization" and arguments.get("prefix", "").lower() == "bearer ":
        return {"in": "bearer"}
    prefix = {"prefix": arguments["prefix"]} if "prefix" in arguments else {}
    kind, name = next(iter(arguments.items()))
    where = kind if kind in {"basic", "path"} else name if kind == "field" else f"{kind}:{name}"
    return {"in": where, **prefix}


def _of_token(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that say where a signed token is, and what it must say."""
    header, hashed = arguments["header"], arguments.get("body_hash")
    where = arguments.get("field") or (
        "bearer" if header == "authorization" else f"header:{header}" if header else "body"
    )
    said: dict[str, Any] = {"in": where, "algorithms": list(arguments["algorithms"])}
    said |= {name: True for name in ("detached", "body_is_unsigned") if arguments.get(name)}
    if hashed:
        table = {"claim": hashed[0], "encoding": hashed[1], "hash": arguments.get("hash", "sha256")}
        is_usual = (hashed[1], table["hash"]) == ("hex", "sha256")
        said["body_hash"] = hashed[0] if is_usual else table
    for option in ("issuer", "audience"):
        if expected := arguments.get(f"{option}s"):
            said[option] = expected[0]
    if arguments["needs"] != ("exp",):
        said["needs"] = list(arguments["needs"])
    if max_age := arguments.get("max_age"):
        said["tolerance"] = int(max_age.total_seconds())
    return said


def _place(kind: str, *arguments: str) -> str:
    if kind in {"body_digest", "data_digest"}:
        return "fingerprint"
    return arguments[0] if kind == "field" else f"{kind}:{arguments[0]}"


def _inline(table: Mapping[str, Any]) -> str:
    return f"{{ {', '.join(f'{key} = {_value(value)}' for key, value in table.items())} }}"


def _value(value: object) -> str:
    if isinstance(value, Timestamp):
        said = {"header": value.header, "key": value.key, "unit": "" if value.unit == "s" else value.unit}
        return _inline({key: text for key, text in said.items() if text})
    if isinstance(value, Mapping):
        return _inline(value)
    if isinstance(value, list | bool):
        return json.dumps(value)
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
