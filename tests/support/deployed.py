"""What deploy/ and the pages about it say: units, variables and configurations, read as their programs would."""

import re
from configparser import ConfigParser
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "how-to"


def variables():
    """The variables that the page about one machine puts into /etc/hookonce/environment."""
    (text,) = re.findall(
        r"^```ini\n(.*?)^```", (PAGES / "one-machine.md").read_text(), re.DOTALL | re.MULTILINE
    )
    return dict(line.split("=", 1) for line in text.splitlines())


def units():
    """The units of systemd, by name."""
    found = {}
    for path in (ROOT / "deploy" / "systemd").iterdir():
        found[path.name] = ConfigParser(interpolation=None, strict=True)
        found[path.name].optionxform = str
        found[path.name].read(path)
    return found
