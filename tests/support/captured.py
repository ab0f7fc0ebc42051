"""Every captured delivery, read once for all the tests that go through them."""

from pathlib import Path

from hookonce.providers.kit.conformance import cases

CAPTURED = [
    case
    for folder in sorted((Path(__file__).parents[1] / "providers").iterdir())
    if any(folder.glob("*.json"))
    for case in cases(folder)
]
