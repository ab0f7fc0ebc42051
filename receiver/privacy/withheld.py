"""The text in place of an error's words that are withheld, since they may quote content."""

import re
from typing import Final

_PLACE: Final = re.compile(r" \([^()\s]+\.pyx?:\d+\)\Z")


def brief(error: str) -> str:
    """Return the class of an error, and where it was raised, without what it says."""
    place = _PLACE.search(error)
    name = re.split(r":\s|\n", error, maxsplit=1)[0]
    return name if place is None or place[0] in name else name + place[0]
