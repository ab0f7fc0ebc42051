"""*Documents*: the pages that came with this version, as their Markdown, with headings and links to follow."""

import posixpath
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from flask import abort, render_template, request, url_for

from hookonce.receiver.dashboard.blueprint import admin
from hookonce.receiver.dashboard.documents import search

_LINK: Final = re.compile(r"(?<!!)\[([^\]\n]+)\]\(([\w./-]*?)(?:\.md)?(#[\w-]+)?\)")


class Piece(NamedTuple):
    """A part of a text; where it is a link, `address` leads to another page of the documents."""

    text: str
    address: str | None = None


@admin.get("/docs")
def documents() -> str:
    """List the pages, or the sections that were asked for."""
    asked = request.args.get("q", "").strip()[:200]
    titles = {each.name: each.title for each in search.sections()}
    found, misspelt = search.find([asked]), search.misspelt([asked])
    return render_template(
        "admin/documents.html", asked=asked, found=found, misspelt=misspelt, titles=titles, anchor=anchor
    )


@admin.get("/docs/<path:name>")
def document(name: str) -> str:
    """Show a page."""
    if name not in search.names():
        abort(404, "No page of the documents has this name.")
    parts = [
        (each.heading, anchor(each.heading), list(_pieces(each)))
        for each in search.sections()
        if each.name == name
    ]
    return render_template("admin/document.html", name=name, parts_of_page=parts)


def anchor(heading: str) -> str:
    """Return the name by which links to a heading call it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _pieces(section: search.Section) -> Iterator[Piece]:
    """Take a text apart at its links; those that lead out of the documents stay as they are written."""
    end = 0
    for link in _LINK.finditer(section.text):
        name = posixpath.normpath(posixpath.join(posixpath.dirname(section.name), link[2]))
        name = name if link[2] else section.name
        if name in search.names():
            yield Piece(section.text[end : link.start()])
            yield Piece(link[1], url_for("admin.document", name=name) + (link[3] or ""))
            end = link.end()
    yield Piece(section.text[end:])
