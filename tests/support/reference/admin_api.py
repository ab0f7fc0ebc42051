"""docs/reference/api.md: every operation and model of the admin API, from its OpenAPI document."""

import json
from http import HTTPStatus

from hookonce.receiver.app import create_app
from hookonce.receiver.config.settings import Settings
from tests.support.reference.layout import code, head, table

REF = "#/components/schemas/"
INTRODUCTION = """\
The same, for programs: `/api/v1/openapi.json`, which needs no token. [How to use it](../how-to/api.md) has tokens,
paging, idempotency and refusals, which are the same everywhere. Paths are under `/api/v1`.
"""


def page():
    document = openapi()
    operations = [
        (method.upper(), path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    listed = table(
        ("operation", "scope", "does"),
        [(_link(method, path), _scope(each), each["summary"]) for method, path, each in operations],
    )
    sections = "".join(_operation(*each) for each in operations)
    models = "".join(_model(name, each) for name, each in sorted(document["components"]["schemas"].items()))
    return (
        head("The admin API", "the API's OpenAPI document", INTRODUCTION)
        + f"\n## Operations\n\n{listed}{sections}\n## Models\n{models}"
    )


def openapi():
    application = create_app(Settings("postgresql:///nowhere", "redis://localhost", {}, desk="door"))
    return application.test_client().get("/api/v1/openapi.json").get_json()


def _operation(method, path, operation):
    said = [operation["summary"] + ".", operation.get("description", "")]
    text = "\n\n".join(each for each in said if each)
    parameters = [_parameter(each) for each in operation.get("parameters", [])]
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    takes = f"\nTakes {_type(body)}.\n" if body else ""
    gives = "".join(
        f"\n{_given(status, each)}\n" for status, each in operation["responses"].items() if status in _GOOD
    )
    return (
        f"\n### {method} {path}\n\n{text}\n"
        + ("\n" + table(("parameter", "in", "type", "means"), parameters) if parameters else "")
        + takes
        + gives
    )


_GOOD = {str(int(status)) for status in (HTTPStatus.OK, HTTPStatus.CREATED, HTTPStatus.NO_CONTENT)}


def _given(status, response):
    kinds = response.get("content", {})
    given = [_type(each["schema"]) if "json" in kind else code(kind) for kind, each in kinds.items()]
    return f"{status}: {' or '.join(given) or 'no body'}. {response['description']}"


def _parameter(said):
    where = said["in"] + (", required" if said.get("required") and said["in"] != "path" else "")
    return code(said["name"]), where, _type(said["schema"]), said.get("description", "")


def _model(name, schema):
    said = f"\n### {name}\n\n{schema.get('description', '')}\n"
    if "properties" not in schema:
        return f"{said}\n{_type(schema)}\n"
    needed = schema.get("required", ())
    rows = [
        (code(key), _type(each) + ("" if key in needed else ", optional"), each.get("description", ""))
        for key, each in schema["properties"].items()
    ]
    return said + "\n" + table(("field", "type", "means"), rows)


def _type(schema):
    if "$ref" in schema:
        name = schema["$ref"].removeprefix(REF)
        return f"[{name}](#{name.lower()})"
    if "enum" in schema:
        return " or ".join(code(json.dumps(each)) for each in schema["enum"])
    if "const" in schema:
        return code(json.dumps(schema["const"]))
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " or ".join(dict.fromkeys(_type(each) for each in schema[several]))
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return schema.get("format") or schema.get("type") or "text"


def _scope(operation):
    scopes = [scope for each in operation.get("security", []) for scopes in each.values() for scope in scopes]
    return ", ".join(map(code, scopes)) or "any token"


def _link(method, path):
    anchor = f"{method} {path}".lower()
    kept = "".join(each for each in anchor if each.isalnum() or each in " -_")
    return f"[`{method} {path}`](#{kept.replace(' ', '-')})"
