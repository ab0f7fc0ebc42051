"""Which tests execute which line: one run of the whole suite, with a probe before the line of every mutant.

It is run part by part, and what a part has said is kept: a run that was stopped goes on behind it.
"""

import json
import shlex
import shutil
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.mutants import copies
from tests.mutants.site import Site, with_probes

PROBED = "-p mutants_plugin --mutants-probed"


@dataclass(frozen=True, slots=True)
class Test:
    """A test as it was run once; `outcome` is pytest's word."""

    name: str
    seconds: float
    outcome: str
    is_alone: bool


@dataclass(slots=True)
class Reach:
    """The tests of a suite, by site those that execute it, and by part of the suite which sites it was asked for."""

    tests: dict[str, Test] = field(default_factory=dict)
    sites: dict[str, set[str]] = field(default_factory=dict)
    parts: dict[str, set[str]] = field(default_factory=dict)

    def of(self, site: Site) -> list[Test]:
        """Return the tests that execute a site."""
        return [self.tests[name] for name in sorted(self.sites.get(str(site), ()))]

    def breadth(self) -> Mapping[str, int]:
        """Return how many sites each test executes: the fewer, the more it is about each."""
        return Counter(name for names in self.sites.values() for name in names)

    def unknown(self, part: str, sites: Iterable[Site]) -> list[Site]:
        """Return the sites that a part of the suite was not asked for yet."""
        return sorted(site for site in sites if str(site) not in self.parts.get(part, ()))

    def add(
        self, part: str, sites: Iterable[Site], tests: Iterable[Test], found: Mapping[str, set[str]]
    ) -> None:
        """Add what a run of a part says of some sites."""
        self.parts.setdefault(part, set()).update(map(str, sites))
        self.tests |= {test.name: test for test in tests}
        for site, names in found.items():
            self.sites.setdefault(site, set()).update(names)

    def save(self, path: Path) -> None:
        """Write it down."""
        said = {
            "parts": {part: sorted(sites) for part, sites in self.parts.items()},
            "tests": [asdict(test) for test in self.tests.values()],
            "sites": {site: sorted(names) for site, names in self.sites.items()},
        }
        new = path.with_suffix(".new")
        new.write_text(json.dumps(said))
        new.replace(path)

    @classmethod
    def load(cls, path: Path) -> "Reach":
        """Read what `save` wrote; nothing is known where there is none."""
        if not path.exists():
            return cls()
        said = json.loads(path.read_text())
        return cls(
            {each["name"]: Test(**each) for each in said["tests"]},
            {site: set(names) for site, names in said["sites"].items()},
            {part: set(sites) for part, sites in said["parts"].items()},
        )


class Probed:
    """A copy of `base` with a probe at each of these sites, whose suite is run part by part."""

    def __init__(self, base: Path, place: Path, sites: Iterable[Site]) -> None:
        self._copy = copies.again(base, place)
        self._folder = self._copy / ".venv" / copies.PACKAGES / "mutants_reached"
        of_file: dict[str, list[Site]] = defaultdict(list)
        for site in sites:
            of_file[site.file].append(site)
        for file, theirs in of_file.items():
            (self._copy / file).write_text(with_probes((self._copy / file).read_text(), theirs))

    def run(self, places: Iterable[str]) -> tuple[list[Test], dict[str, set[str]]]:
        """Run the tests in some places as `make test` does; return them, and by site which of them execute it.

        Raises: RuntimeError where tests can't be collected.
        """
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir()
        self._folder.chmod(0o777)
        with self._copy.with_suffix(".log").open("a") as log:
            command = ["make", "--no-print-directory", "test", f"ARGS={PROBED} {shlex.join(places)}"]
            subprocess.run(command, cwd=self._copy, stdout=log, stderr=subprocess.STDOUT, check=False)
        if (uncollected := self._folder / "uncollected").exists():
            names = ", ".join(sorted(set(uncollected.read_text().split())))
            raise RuntimeError(f"these could not be collected with probes in the product: {names}")
        return _read(self._folder)

    def remove(self) -> None:
        """Delete the copy."""
        shutil.rmtree(self._copy)


def parts(files: Iterable[str]) -> dict[str, list[str]]:
    """Return the parts of a suite, each of them run by itself so that no more than one is lost: its top folders."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in map(Path, files):
        if path.parts[0] == "tests" and path.name.startswith("test_") and path.suffix == ".py":
            part = "/".join(path.parts[: min(2, len(path.parts) - 1)])
            found[part].add(part if part != "tests" else str(path))
    return {part: sorted(places) for part, places in sorted(found.items())}


def _read(folder: Path) -> tuple[list[Test], dict[str, set[str]]]:
    """Read what plugin and probes have written."""
    lines = [line for path in sorted(folder.glob("tests-*")) for line in path.read_text().splitlines()]
    said = [json.loads(line) for line in lines]
    names = {each.pop("key"): each["name"] for each in said}
    found: dict[str, set[str]] = defaultdict(set)
    notes = folder / "notes"
    for line in notes.read_text().splitlines() if notes.exists() else ():
        site, _, key = line.partition("\t")
        if key in names:  # it is not, of a test that was cut off
            found[site].add(names[key])
    return [Test(**each) for each in said], found
