import itertools
import re
from pathlib import Path

import pytest

CSS = (Path(__file__).parents[2] / "receiver/dashboard/static/admin.css").read_text()
ENOUGH = 4.5
"""WCAG 2.2, level AA, for text."""
WRITTEN = (
    "text",
    "soft",
    "faint",
    "accent",
    "received",
    "running",
    "waiting",
    "done",
    "dead",
    "ignored",
    "held",
    "rejected",
)
ON = ("face", "ground", "raised")


def colours(dark):
    blocks = re.findall(r":root \{(.*?)\}", CSS, re.DOTALL)
    named = [dict(re.findall(r"--([\w-]+): (#[0-9a-f]+)", block)) for block in blocks]
    return named[0] | (named[1] if dark else {})


def luminance(colour):
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    channels = [int(digits[n : n + 2], 16) / 255 for n in (0, 2, 4)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one, other):
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_every_colour_of_text_is_readable_on_what_is_behind_it(dark):
    named = colours(dark)
    pairs = [
        *itertools.product(WRITTEN, ON),
        ("on-accent", "accent"),
        ("accent", "accent-face"),
        *itertools.product(("text", "soft", "accent", "held", "done", "rejected"), ("code", "bad-face")),
    ]
    pairs += [
        ("dead", "bad-face"),
        ("text", "warn-face"),
        ("text", "good-face"),
    ]

    faint = {pair: round(contrast(*(named[name] for name in pair)), 2) for pair in pairs}

    assert {pair: ratio for pair, ratio in faint.items() if ratio < ENOUGH} == {}
