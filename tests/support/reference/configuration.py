"""docs/reference/configuration.md: every table and key of hookonce.toml, from the pydantic models."""

import ast
import inspect
import json
import re
import types
from collections.abc import Callable
from datetime import timedelta
from importlib import import_module
from itertools import pairwise
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from hookonce.providers.kit.registry import names
from hookonce.receiver.config import settings
from hookonce.receiver.config.admin import network
from hookonce.receiver.config.alerts import Rate
from hookonce.receiver.config.file_mistakes import model_in, settings_of
from hookonce.receiver.source import seconds, steps
from tests.support.reference.layout import code, head, table

SELF_EVIDENT = re.compile(r"(What may stand in `\[\w+\]`\.)?")
FILE = settings.File
WRITTEN = {seconds: "number, more than 0, to 2,592,000", steps: "text", network: "text"}
"""The types of settings whose reader takes something else than what it makes of it."""
UNITS = (("w", 7 * 86400), ("d", 86400), ("h", 3600), ("m", 60), ("s", 1))
INTRODUCTION = """\
The file is `hookonce.toml` in the current directory, or what `HOOKONCE_CONFIG` names. Every mistake in it is told at
once. A *time* is a number with its unit: `90s`, `15m`, `2h`, `7d`, `4w`. A *reference* is `env:NAME` or
`file:/path`, with `?` at its end where it may be absent.
[Environment variables](environment.md) win over the file. With no file at all, `HOOKONCE_SECRET__STRIPE=whsec_…`
makes the source `stripe`.
"""
TEN = (
    ("sources.NAME", "provider"),
    ("sources.NAME", "secrets"),
    ("receiver", "database_url"),
    ("receiver", "redis_url"),
    ("receiver", "handlers"),
    ("receiver", "public_url"),
    ("receiver", "keep_events"),
    ("receiver", "keep_bodies"),
    ("admin", "token"),
    ("alerts.slack", "url"),
)
"""The settings that an inbox in production needs, as table and key."""
OPTIONS = """
## Options of a provider

Some providers take options, in a table of the provider's name: `[sources.NAME.hmac]`, or `hmac = { … }` in the
source's own. The modules say which:
"""


def page():
    sections = "".join(_sections(FILE, ""))
    options = "".join(f"\n### {name}\n\n{_options(name)}\n" for name in names() if _has_options(name))
    return (
        head("Configuration", "the models that read the file", INTRODUCTION)
        + _ten()
        + sections
        + OPTIONS
        + options
    )


def _ten():
    rows = []
    for name, key in TEN:
        (row,) = [_row(*each, name) for each in _keys(_model_of(name)) if each[0] == key]
        anchor = re.sub(r"[^\w-]", "", name.lower())
        rows.append((code(key), f"[`[{name}]`](#{anchor})", *row[2:]))
    return "## The ten settings that one needs\n\n" + table(("key", "table", "default", "means"), rows)


def _model_of(name):
    model = FILE
    for key in name.removesuffix(".NAME").split("."):
        model = model_in(settings_of(model)[key].annotation)
    return model


def undescribed():
    """Name the keys that have no description."""
    return [f"{model.__name__}.{key}" for model in _models(FILE) for key, _, said in _keys(model) if not said]


def _keys(model):
    """Each key of a table, its field, and the sentence below it in the model's source."""
    body = ast.parse(inspect.getsource(model)).body[0].body
    said = {
        each.target.id: " ".join(ast.literal_eval(text.value).split())
        for each, text in pairwise(body)
        if isinstance(each, ast.AnnAssign) and isinstance(text, ast.Expr)
    }
    names = {_alias(hint) or name: name for name, hint in get_type_hints(model, include_extras=True).items()}
    for key, field in settings_of(model).items():
        yield key, field, said.get(names[key], "")


def _alias(hint):
    given = [each for each in getattr(hint, "__metadata__", ()) if isinstance(each, FieldInfo)]
    return given[0].alias if given else None


def _models(model):
    for field in settings_of(model).values():
        if inner := model_in(field.annotation):
            yield inner
            yield from _models(inner)


def _sections(model, prefix):
    for key, field in settings_of(model).items():
        inner = model_in(field.annotation)
        if inner is None:
            continue
        name = f"{prefix}{key}" + (
            ".NAME" if get_origin(field.annotation) is not None and _is_map(field) else ""
        )
        rows = [_row(*each, name) for each in _keys(inner)]
        yield f"\n## `[{name}]`\n{_said(inner)}\n" + table(("key", "type", "default", "means"), rows)
        yield from _sections(inner, f"{name}.")


def _said(model):
    """What the model's docstring says besides where it stands."""
    said = " ".join(inspect.cleandoc(model.__doc__ or "").partition("\n\n")[0].split())
    return "" if SELF_EVIDENT.fullmatch(said) else f"\n{said}\n"


def _is_map(field):
    return isinstance(field.annotation, types.GenericAlias) and get_origin(field.annotation) is dict


def _row(key, field, said, table_name):
    if model_in(field.annotation):
        kind = "list of tables" if get_origin(field.annotation) is tuple else "table"
        return code(key), kind, "", f"{said}: see `[{table_name}.{key}]`"
    return code(key), _type(field.annotation, field.metadata), code(_default(field)), said


def _type(annotation, metadata=()):
    bounds = _bounds(metadata)
    if readers := [WRITTEN[each.func] for each in metadata if getattr(each, "func", None) in WRITTEN]:
        return readers[0]
    if get_origin(annotation) is Annotated:
        return _type(*_unwrapped(annotation))
    if get_origin(annotation) is Literal:
        return " or ".join(code(json.dumps(each)) for each in get_args(annotation))
    if get_origin(annotation) in {Union, types.UnionType}:
        return " or ".join(_type(each) for each in get_args(annotation) if each is not type(None))
    if get_origin(annotation) is tuple:
        inner = get_args(annotation)[0]
        return f"list of {_type(inner)}" + ("" if get_origin(inner) is Literal else "s")
    plain = {
        dict: "table",
        str: "text",
        int: "whole number",
        float: "number",
        bool: "`true` or `false`",
        timedelta: "time",
        Rate: 'rate, like `"20/10m"`',
    }
    named = getattr(annotation, "__name__", str(annotation)).lower()
    return plain.get(get_origin(annotation) or annotation, named) + bounds


def _unwrapped(annotation):
    inner, *metadata = get_args(annotation)
    return inner, metadata


def _bounds(metadata):
    found = {
        name: getattr(each, name)
        for each in metadata
        for name in ("ge", "gt", "le", "lt")
        if hasattr(each, name)
    }
    words = {"ge": "from", "gt": "more than", "le": "to", "lt": "less than"}
    return "".join(f", {words[name]} {value:,}" for name, value in found.items())


def _default(field):
    value = field.get_default(call_default_factory=True)
    if any(getattr(each, "func", None) is seconds for each in field.metadata):
        return f"{value.total_seconds():g}"
    return "" if value is PydanticUndefined or value is None or value == "" else _written(value)


def _written(value: Any) -> str:
    if isinstance(value, timedelta):
        seconds = value.total_seconds()
        unit, size = next((unit, size) for unit, size in UNITS[1:] if seconds % size == 0)
        return f'"{seconds / size:g}{unit}"'
    if isinstance(value, Rate):
        return f'"{value.number}/{_written(value.within).strip(chr(34))}"'
    return json.dumps(value)


def _has_options(name):
    return isinstance(getattr(_module(name), "configure", None), Callable)


def _module(name):
    return import_module(f"hookonce.providers.{name}")


def _options(name):
    first, *rest = inspect.cleandoc(_module(name).__doc__).split("\n\n")
    return "\n\n".join([first, *(_block(each) for each in rest)])


def _block(paragraph):
    if paragraph.startswith("    "):
        return "```toml\n" + inspect.cleandoc(paragraph) + "\n```"
    return f"<{paragraph}>" if paragraph.startswith("https://") and " " not in paragraph else paragraph
