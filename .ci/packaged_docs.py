"""The pages as the wheel carries them: a link to a file that is not in the wheel is text there.

A decision is no page of the wheel's, and an aside that is but a link to one (`([why](…))`) is left out.
"""

import re
import tempfile
from pathlib import Path
from posixpath import dirname, join, normpath
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_SHIPPED = ("*.md", "explanation/**/*.md", "how-to/**/*.md", "reference/**/*.md")
_ASIDE = re.compile(r"\s*\(\[[^\]\n]*\]\((?:\.\./)*decisions/[^)]*\)\)")
_LINK = re.compile(r"!?\[([^\]\n]*)\]\((?!https?:|mailto:|#)([^)#\s]+)(#[^)\s]*)?\)")


class PackagedDocs(BuildHookInterface[Any]):
    """The hook that `[tool.hatch.build.targets.wheel.hooks.custom]` in pyproject.toml names."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Have the wheel carry the pages; a checkout reads its own."""
        if version == "editable":
            return
        self._written = tempfile.TemporaryDirectory()
        docs = Path(self.root) / "docs"
        pages = {page.relative_to(docs).as_posix() for each in _SHIPPED for page in docs.glob(each)}
        for name in sorted(pages):
            text = _LINK.sub(
                lambda link, name=name: self._linked(link, name, pages),
                _ASIDE.sub("", (docs / name).read_text()),
            )
            page = Path(self._written.name, name)
            page.parent.mkdir(parents=True, exist_ok=True)
            page.write_text(text)
        build_data["force_include"][self._written.name] = "hookonce/docs"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        """Remove what was written for the wheel."""
        if version != "editable":
            self._written.cleanup()

    def _linked(self, link: re.Match[str], name: str, pages: set[str]) -> str:
        """Return a link as it is if the wheel has its target: another page, or a file of the package."""
        target = normpath(join(dirname(name), link[2]))
        package = target.removeprefix("../")
        places = (
            [self.root] if package.startswith("deploy/") else [self.root, "hookonce"]
        )  # as in pyproject.toml
        is_there = target in pages or (target != package and Path(*places, package).exists())
        return link[0] if is_there else link[1]
