"""What is kept: reach and outcomes of a tree in `.mutants/`, and what the suite of before made of each mutant.

Outcomes are added one by one, so a run that was stopped goes on where it was. They are of one content of the tree, and
of one wording of the mutant: whatever changes is tried anew.
"""

import json
import threading
from dataclasses import asdict
from pathlib import Path

from tests.mutants.mutant import HERE, ROOT, Mutant
from tests.mutants.trial import Outcome, Verdict

KEPT = ROOT / ".mutants"
RECORDED = HERE / "verdicts.json"


class Outcomes:
    """The outcomes for one tree; for all threads."""

    def __init__(self, key: str) -> None:
        self.folder = KEPT / key
        self.folder.mkdir(parents=True, exist_ok=True)
        self._path = self.folder / "outcomes.jsonl"
        self._lock = threading.Lock()
        self._found: dict[tuple[str, str], Outcome] = {}
        for line in self._path.read_text().splitlines() if self._path.exists() else ():
            name, digest, said = json.loads(line)
            self._found[name, digest] = Outcome(**{**said, "verdict": Verdict(said["verdict"])})

    @property
    def reach(self) -> Path:
        """The file for the reach."""
        return self.folder / "reach.json"

    def of(self, mutant: Mutant) -> Outcome | None:
        """Return what came of a mutant, if it was tried."""
        return self._found.get((mutant.name, mutant.digest))

    def add(self, mutant: Mutant, outcome: Outcome) -> None:
        """Keep what came of a mutant."""
        with self._lock, self._path.open("a") as file:
            self._found[mutant.name, mutant.digest] = outcome
            file.write(json.dumps([mutant.name, mutant.digest, asdict(outcome)]) + "\n")


def recorded() -> dict[str, dict[str, str]]:
    """Return, by mutant, the verdict of the suite of before, and the test that caught it."""
    said: dict[str, dict[str, str]] = json.loads(RECORDED.read_text())["verdicts"]
    return said


def write_recorded(commit: str, outcomes: dict[str, Outcome]) -> None:
    """Write down the verdicts of a suite that others are to be held to."""
    verdicts = {
        name: {"verdict": str(each.verdict)} | ({"by": each.by} if each.by else {})
        for name, each in sorted(outcomes.items())
    }
    RECORDED.write_text(json.dumps({"commit": commit, "verdicts": verdicts}, indent=2) + "\n")
