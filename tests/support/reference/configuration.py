"""docs/reference/configuration.md: every table and key of hookonce.toml, from the pydantic models."""

import inspect
import json
import re
import types
from collections.abc import Callable
from datetime import timedelta
from importlib import import_module
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from hookonce.providers.kit.registry import names
from hookonce.receiver.config import settings
from hookonce.receiver.config.alerts import Rate
from tests.support.reference.layout import code, head, table

SELF_EVIDENT = re.compile(r"(What may stand in `\[\w+\]`\.)?")
FILE = settings._File  # noqa: SLF001  # the model of the whole file is nobody else's
UNITS = (("w", 7 * 86400), ("d", 86400), ("h", 3600), ("m", 60), ("s", 1))
INTRODUCTION = """\
The file is `hookonce.toml` in the current directory, or what `HOOKONCE_CONFIG` names. Every mistake in it is told at
once. A *time* is a number with its unit: `90s`, `15m`, `2h`, `7d`, `4w`. A *reference* is `env:NAME` or
`file:/path`, with `?` at its end where it may be absent.
[Environment variables](environment.md) win over the file. With no file at all, `HOOKONCE_SECRET__STRIPE=whsec_…`
makes the source `stripe`.
"""
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
        + sections.removeprefix("\n")
        + OPTIONS
        + options
    )


def undescribed():
    """Name the keys that have no description."""
    return [f"{model.__name__}.{key}" for model, key, field in _keys(FILE) if not field.description]


def _keys(model):
    for key, field in model.model_fields.items():
        inner = _model(field.annotation)
        if inner:
            yield from _keys(inner)
        else:
            yield model, key, field


def _sections(model, prefix):
    for key, field in model.model_fields.items():
        inner = _model(field.annotation)
        if inner is None:
            continue
        name = f"{prefix}{key}" + (
            ".NAME" if get_origin(field.annotation) is not None and _is_map(field) else ""
        )
        rows = [_row(field.alias or key, field, name) for key, field in inner.model_fields.items()]
        said = _said(inner)
        yield f"\n## `[{name}]`\n{said}\n" + table(("key", "type", "default", "means"), rows)
        yield from _sections(inner, f"{name}.")


def _said(model):
    """What the model's docstring says besides where it stands."""
    said = " ".join(inspect.cleandoc(model.__doc__ or "").split())
    return "" if SELF_EVIDENT.fullmatch(said) else f"\n{said}\n"


def _is_map(field):
    return isinstance(field.annotation, types.GenericAlias) and get_origin(field.annotation) is dict


def _model(annotation):
    """The model that a key's value is, alone, or several by name, or None if it is a plain value."""
    candidates = [annotation, *get_args(annotation)]
    return next((each for each in candidates if inspect.isclass(each) and _is_model(each)), None)


def _is_model(each):
    return not isinstance(each, types.GenericAlias) and issubclass(each, BaseModel)


def _row(key, field, table_name):
    if _model(field.annotation):
        return code(key), "`true`, `false` or a table", "`false`", f"see `[{table_name}.{key}]`"
    return code(key), _type(field.annotation, field.metadata), code(_default(field)), field.description or ""


def _type(annotation, metadata=()):
    bounds = _bounds(metadata)
    if get_origin(annotation) is Annotated:
        return _type(*_unwrapped(annotation))
    if get_origin(annotation) is Literal:
        return " or ".join(code(json.dumps(each)) for each in get_args(annotation))
    if get_origin(annotation) in {Union, types.UnionType}:
        return " or ".join(_type(each) for each in get_args(annotation) if each is not type(None))
    if get_origin(annotation) is list:
        inner = get_args(annotation)[0]
        return f"list of {_type(inner)}" + ("" if get_origin(inner) is Literal else "s")
    if get_origin(annotation) is dict:
        return "table"
    plain = {
        str: "text",
        int: "whole number",
        float: "number",
        bool: "`true` or `false`",
        timedelta: "time",
        Rate: 'rate, like `"20/10m"`',
    }
    return plain.get(annotation, getattr(annotation, "__name__", str(annotation)).lower()) + bounds


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
