"""The oldest and the newest packages that pyproject.toml allows, each laid over the environment for some tests of ours.

Needs a package index; the newest is what `pip` finds within the bounds.
"""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DECLARED = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LIVED_IN = ("gunicorn", "psycopg", "redis", "rq")
OF_THE_WORKER = (
    *("tests/redis", "tests/web/test_worker.py", "tests/web/test_app.py", "tests/jobs/test_worker.py"),
    *("tests/jobs/slots/test_slot_limit.py", "tests/processes", "tests/intake/test_deduplication.py"),
    *("tests/ledger/test_schema_version.py", "tests/frameworks/test_flask_home.py"),
)
NEWEST_ONLY = "--deselect=tests/web/test_worker.py::test_worker_names_only_settings_that_gunicorn_has"
"""An older gunicorn lacks settings that our worker refuses."""
OF_DJANGO = ("tests/frameworks", "tests/testing/test_django_projects.py", "-k", "django or Django")
DJANGO = {"4.2": ("django==4.2.*",), "5.2": ("django==5.2.*",), "newest": ("django",)}


def bounds(name):
    """The lowest version that is allowed, and the first that is not."""
    [declared] = [each for each in DECLARED["dependencies"] if re.match(rf"{name}\b", each)]
    [found] = re.findall(r">=([\d.]+),<([\d.]+)$", declared)
    return found


def of(which):
    """The requirements of the oldest or the newest of what the worker lives in; psycopg's two parts are one."""
    made = []
    for name in LIVED_IN:
        low, top = bounds(name)
        version = f"=={low}" if which == "oldest" else f">={low},<{top}"
        made += [f"{each}{version}" for each in ((name, "psycopg-binary") if name == "psycopg" else (name,))]
    return made


def tried(folder, requirements, tests):
    """Run tests with packages laid over the environment; what they said, and which versions they ran with."""
    install = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--upgrade",
        "--target",
        folder,
    ]
    installed = subprocess.run([*install, *requirements], capture_output=True, text=True, check=False)
    if "No matching distribution" in installed.stderr or "ConnectionError" in installed.stderr:
        pytest.skip("no package index has these versions")
    assert installed.returncode == 0, installed.stderr
    names = [re.match(r"[\w-]+", each)[0] for each in requirements]
    environ = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    environ["PYTHONPATH"] = str(folder)
    found = subprocess.run(
        [
            sys.executable,
            "-c",
            f"import importlib.metadata as m, json; print(json.dumps([m.version(n) for n in {names}]))",
        ],
        env=environ,
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
    )
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-n",
            "2",
            "-p",
            "no:cacheprovider",
            "--lane=pure",
            "--lane=servers",
            *tests,
        ],
        env=environ,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8000:]
    return dict(zip(names, json.loads(found.stdout), strict=True))


@pytest.mark.parametrize("which", ["oldest", "newest"])
def test_worker_runs_on_the_packages_that_are_allowed(tmp_path, which):
    ran = tried(tmp_path, of(which), (*OF_THE_WORKER, NEWEST_ONLY))

    for name in LIVED_IN:
        low, _ = bounds(name)
        assert which == "newest" or ran[name].startswith(low), ran


@pytest.mark.parametrize("which", DJANGO)
def test_django_is_a_home_in_each_version_that_is_supported(tmp_path, which):
    ran = tried(tmp_path, DJANGO[which], OF_DJANGO)

    assert which == "newest" or ran["django"].startswith(which)
