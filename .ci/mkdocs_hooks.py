"""What the documents' site needs of mkdocs beyond its settings; see mkdocs.yml beside this file."""

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

_LINK = re.compile(r"\[([^\]]*)\]\((?!https?:|#|mailto:)([^)#\s]+)(#[^)\s]*)?\)")
_FILE = re.compile(r"^<!-- file: (\S+) -->$", re.MULTILINE)
_FETCHED = re.compile(r"<(?:script|link|img|iframe)\b[^>]*?\b(?:src|href)=[\"']?(?:https?:)?//[^>]*>")


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Unlink what lies in the repository but not on the site; a target that is nowhere stays, to be reported."""
    docs = Path(config.docs_dir).resolve()
    here = Path(page.file.abs_src_path).resolve().parent

    markdown = _FILE.sub(lambda named: _block(docs.parent / named[1]), markdown)

    def unlink(link: re.Match[str]) -> str:
        target = (here / link[2]).resolve()
        is_elsewhere = not target.is_relative_to(docs) and target.exists()
        return link[1] if is_elsewhere else link[0]

    return _LINK.sub(unlink, markdown)


def _block(file: Path) -> str:
    return f"```{file.suffix.removeprefix('.')}\n{file.read_text(encoding='utf-8')}```"


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:  # noqa: ARG001
    """Stop the build if a page would make a reader's browser fetch something from another host."""
    fetched = _FETCHED.search(output)
    if fetched and 'rel="canonical"' not in fetched[0]:
        raise PluginError(f"{page.file.src_uri} fetches from another host: {fetched[0]}")
    return output
