"""The README as the page of the package: there its links into the repository would lead nowhere, so they are text."""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"!?\[([^\]]*)\]\((?!https?:|mailto:)[^)]*\)")


class ReadmeForPyPI(MetadataHookInterface):
    """What `[tool.hatch.metadata.hooks.custom]` in pyproject.toml asks for."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the description of a wheel or an sdist."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": _LINK.sub(r"\1", text)}
