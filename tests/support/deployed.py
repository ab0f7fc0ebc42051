"""What deploy/ and the pages about it say: units, variables and configurations, read as their programs would."""

import re
from configparser import ConfigParser
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "how-to"


def environments():
    """The files of variables that the page about one machine makes, by their paths."""
    text = (PAGES / "one-machine.md").read_text()
    blocks = re.findall(r"^```ini\n# (/\S+)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return {path: dict(line.split("=", 1) for line in block.splitlines()) for path, block in blocks}


def variables():
    """The variables of all units of that page together."""
    return {name: value for each in environments().values() for name, value in each.items()}


def units():
    """The units of systemd, by name."""
    found = {}
    for path in (ROOT / "deploy" / "systemd").iterdir():
        found[path.name] = ConfigParser(interpolation=None, strict=True)
        found[path.name].optionxform = str
        found[path.name].read(path)
    return found


def kubernetes_environment(documents, container):
    """The variables that a container has, with the values that the manifests' Secrets give."""
    secrets = {each["metadata"]["name"]: each["stringData"] for each in documents if each["kind"] == "Secret"}
    found = {}
    for each in container.get("envFrom", []):
        reference = each["secretRef"]
        if reference["name"] in secrets or not reference.get("optional"):
            found |= secrets[reference["name"]]
    for each in container.get("env", []):
        if "value" in each:
            found[each["name"]] = each["value"]
        else:
            reference = each["valueFrom"]["secretKeyRef"]
            found[each["name"]] = secrets[reference["name"]][reference["key"]]
    return found


def compose_files():
    """The files of variables that each service of compose.yaml is given, and the names in `environment`."""
    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    return {
        name: ({each["path"] for each in service.get("env_file", [])}, set(service["environment"]))
        for name, service in services.items()
        if "build" in service
    }
