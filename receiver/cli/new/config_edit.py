"""Adds a place to `[receiver] providers` in the text of hookonce.toml, leaving every other character as it is.

There is no TOML writer in the standard library, and one would lose comments. So this edits the text, reads the
result back, and gives up unless it says exactly what was wanted.
"""

import json
import re
import tomllib

_HEADER = re.compile(r"^[ \t]*\[[ \t]*receiver[ \t]*\][ \t]*(#.*)?$", re.MULTILINE)
_ANY_HEADER = re.compile(r"^[ \t]*\[", re.MULTILINE)
_KEY = re.compile(r"^[ \t]*providers[ \t]*=[ \t]*\[", re.MULTILINE)


class CanNotEdit(Exception):  # noqa: N818  a verdict about a text
    """The text is written in a way this can't edit."""


def with_place(text: str, place: str) -> str:
    """Return the text with `place` as the first of the providers. Raises: `CanNotEdit`."""
    try:
        wanted = tomllib.loads(text)
        edited = _edited(text, json.dumps(place))
        receiver = wanted.setdefault("receiver", {})
        receiver["providers"] = [place, *receiver.get("providers", [])]
        if tomllib.loads(edited) == wanted:
            return edited
    except (tomllib.TOMLDecodeError, AttributeError, TypeError):
        pass
    raise CanNotEdit("it is written in a way that can't be edited safely")


def _edited(text: str, quoted: str) -> str:
    header = _HEADER.search(text)
    if header is None:
        gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
        return f"{text}{gap}[receiver]\nproviders = [{quoted}]\n"
    following = _ANY_HEADER.search(text, header.end())
    key = _KEY.search(text, header.end(), following.start() if following else len(text))
    if key is None:
        return f"{text[: header.end()]}\nproviders = [{quoted}]{text[header.end() :]}"
    is_empty = re.match(r"\s*\]", text[key.end() :])
    return f"{text[: key.end()]}{quoted}{'' if is_empty else ', '}{text[key.end() :]}"
