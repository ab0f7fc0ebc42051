"""A client of the former document (`openapi_former.json`, without its words) sends and reads as it did."""

import json
from pathlib import Path

import pytest

from hookonce.receiver.api import openapi

FORMER = json.loads((Path(__file__).parent / "openapi_former.json").read_text())
NOW = json.loads(openapi.document())
OPERATIONS = [(path, method) for path, found in FORMER["paths"].items() for method in found]
CHANGED_HEADER = "Idempotency-Key"
"""Narrower on purpose: a comma stands in quotes only, since a header that is sent twice is joined by one."""
CHANGED_ANSWERS = {"/window/forget"}
"""Wider on purpose: `forgotten` is null while Redis does not answer."""
BOUNDS = (
    ("minimum", 1),
    ("minLength", 1),
    ("minItems", 1),
    ("maximum", -1),
    ("maxLength", -1),
    ("maxItems", -1),
)


def choices(schema, document):
    """The schemas of which one holds, none of them a reference or a choice."""
    if "$ref" in schema:
        return choices(document["components"]["schemas"][schema["$ref"].rpartition("/")[2]], document)
    parts = schema.get("anyOf") or schema.get("oneOf")
    return [each for part in parts for each in choices(part, document)] if parts else [schema]


def takes(new, old, to_new, to_old):
    """Whether a schema takes every value of another; each with the document of its references."""
    return all(
        any(_takes(mine, its, to_new, to_old) for mine in choices(new, to_new))
        for its in choices(old, to_old)
    )


def _takes(new, old, to_new, to_old):
    values = old.get("enum", [old["const"]] if "const" in old else None)
    allowed = new.get("enum", [new["const"]] if "const" in new else values)
    mine, its = new.get("properties", {}), old.get("properties", {})
    return (
        new.get("type", old.get("type")) == old.get("type")
        and (allowed is None or (values is not None and set(values) <= set(allowed)))
        and (values is not None or new.get("pattern", old.get("pattern")) == old.get("pattern"))
        and all(name in old and new[name] * sign <= old[name] * sign for name, sign in BOUNDS if name in new)
        and set(new.get("required", ())) <= set(old.get("required", ()))
        and ("items" not in new or takes(new["items"], old.get("items", {}), to_new, to_old))
        and (new.get("additionalProperties") is not False or its.keys() <= mine.keys())
        and all(takes(mine[name], its[name], to_new, to_old) for name in mine.keys() & its.keys())
    )


def is_shown_as_before(new, old):
    """Whether what is answered has all that was answered before, of the same kinds."""
    return all(any(_shows(mine, its) for its in choices(old, FORMER)) for mine in choices(new, NOW))


def _shows(new, old):
    if "type" in old and new.get("type") != old["type"]:
        return False
    its, mine = old.get("properties", {}), new.get("properties", {})
    if not its.keys() <= mine.keys() or not set(old.get("required", ())) <= set(new.get("required", ())):
        return False
    if "items" in old and not is_shown_as_before(new["items"], old["items"]):
        return False
    return all(is_shown_as_before(mine[name], its[name]) for name in its)


def content(document):
    return {kind: found.get("schema", {}) for kind, found in document.get("content", {}).items()}


@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_operation_takes_what_it_took(path, method):
    old, new = FORMER["paths"][path][method], NOW["paths"][path][method]
    known = {(each["name"], each["in"]): each for each in new["parameters"]}
    former = {(each["name"], each["in"]): each for each in old["parameters"]}

    assert new["operationId"] == old["operationId"]
    assert new.get("security") == old.get("security")
    for name, each in former.items():
        holds = takes(known[name]["schema"], each["schema"], NOW, FORMER)
        assert holds != (each["name"] == CHANGED_HEADER), name
    assert all(name in former for name, each in known.items() if each.get("required"))
    for kind, schema in content(old.get("requestBody", {})).items():
        assert takes(content(new["requestBody"])[kind], schema, NOW, FORMER)
    assert "requestBody" in old or "requestBody" not in new


@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_operation_answers_what_it_answered(path, method):
    old, new = FORMER["paths"][path][method]["responses"], NOW["paths"][path][method]["responses"]

    for status, answer in old.items():
        for kind, schema in content(answer).items():
            is_changed = path in CHANGED_ANSWERS and status == "200"
            assert is_shown_as_before(content(new[status])[kind], schema) != is_changed, status


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ({"type": "string"}, {"type": "integer"}),
        ({"type": "integer", "minimum": 2}, {"type": "integer", "minimum": 1}),
        ({"enum": ["a"]}, {"enum": ["a", "b"]}),
        ({"type": "object", "required": ["a"]}, {"type": "object"}),
        (
            {"type": "object", "properties": {}, "additionalProperties": False},
            {"type": "object", "properties": {"a": {}}},
        ),
    ],
)
def test_narrower_schema_is_noticed(new, old):
    assert takes(old, old, NOW, FORMER)
    assert not takes(new, old, NOW, FORMER)


@pytest.mark.parametrize(
    "new", [{"type": "object"}, {"type": "object", "properties": {"a": {"type": "string"}}}, {"type": "null"}]
)
def test_answer_that_lacks_something_is_noticed(new):
    old = {"type": "object", "properties": {"a": {"type": "integer"}}}

    assert is_shown_as_before(old, old)
    assert not is_shown_as_before(new, old)
