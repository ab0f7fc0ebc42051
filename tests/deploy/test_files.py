import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
import zipfile
from fnmatch import fnmatch
from pathlib import Path

import click
import pytest
import yaml

from hookonce.receiver.cli import cli

ROOT = Path(__file__).parents[2]
LOCKS = ("requirements.lock", "requirements-run.lock")
OURS = "hookonce"


def text(name):
    return (ROOT / name).read_text(encoding="utf-8")


def command(words):
    """The command of ours that the words name; fails if there is none."""
    found, context = cli, click.Context(cli)
    for word in words:
        assert isinstance(found, click.Group), f"{words} goes too far"
        found = found.get_command(context, word)
        assert found is not None, f"there is no {shlex.join(words)}"
    return found


def procfile():
    return dict(line.split(": ", 1) for line in text("Procfile").splitlines())


def services():
    return yaml.safe_load(text("compose.yaml"))["services"]


def instructions():
    """The Dockerfile as (instruction, words) pairs."""
    joined = re.sub(r"\\\n", " ", re.sub(r"(?m)^#.*\n", "", text("Dockerfile")))
    return [(line.split()[0], line.split()[1:]) for line in joined.splitlines() if line.strip()]


def pins(lock):
    return dict(re.findall(r"^([\w.-]+)==(\S+)", text(lock), re.MULTILINE))


def plain(requirement):
    return re.match(r"[\w.-]+", requirement)[0].lower().replace("_", "-")


def make(*words):
    program = shutil.which("make")
    if program is None:
        pytest.skip("make is not installed")
    quiet = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    return subprocess.run([program, *words], cwd=ROOT, env=quiet, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("process", ["release", "web", "worker"])
def test_procfile_names_commands_that_exist(process):
    program, *words = shlex.split(procfile()[process])

    assert program == OURS
    assert not isinstance(command(words), click.Group)


def test_compose_runs_the_same_commands_as_the_procfile():
    built = {name: service for name, service in services().items() if "build" in service}

    commands = {name: shlex.join([OURS, *service["command"]]) for name, service in built.items()}

    assert procfile().items() <= commands.items()
    assert commands["desk"] == procfile()["web"]


def test_compose_waits_only_for_what_can_tell_its_state():
    for name, service in services().items():
        for other, how in service.get("depends_on", {}).items():
            awaited = services()[other]
            if how["condition"] == "service_healthy":
                assert "test" in awaited["healthcheck"], f"{name} waits for {other}"
            else:
                assert awaited["restart"].startswith("on-failure:")


def test_compose_declares_the_volumes_it_uses():
    used = {
        mount.partition(":")[0]
        for service in services().values()
        for mount in service.get("volumes", [])
        if not mount.startswith(".")
    }

    assert used == set(yaml.safe_load(text("compose.yaml"))["volumes"]) == {"postgres", "redis"}


def test_compose_has_a_redis_that_drops_nothing():
    words = services()["redis"]["command"]

    assert words[words.index("--maxmemory-policy") + 1] == "noeviction"
    assert words[words.index("--appendonly") + 1] == "yes"


def test_compose_holds_no_password():
    given = re.findall(r"([A-Z]+)_PASSWORD: (\S+)", text("compose.yaml"))

    assert {name: value for name, value in given} == {  # noqa: C416  the names once
        name: f"${{{name}_PASSWORD:?set" for name in ("POSTGRES", "UPGRADE", "RECEIVER", "WORKER", "DESK")
    }
    assert len(re.findall(r"://\w+:\$\{\w+_PASSWORD:\?", text("compose.yaml"))) == 4


def test_dockerfile_copies_what_exists_and_is_not_ignored():
    kept = [line[1:] for line in text(".dockerignore").splitlines() if line.startswith("!")]
    copied = [
        source
        for name, words in instructions()
        if name == "COPY" and not words[0].startswith("--from")
        for source in words[:-1]
    ]

    assert copied
    for source in copied:
        assert (ROOT / source).exists(), f"{source} is not there"
        assert any(fnmatch(source, each) for each in kept), f"{source} is in .dockerignore"


def test_dockerfile_copies_all_that_the_build_needs():
    project = tomllib.loads(text("pyproject.toml"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    copied = {word for name, words in instructions() if name == "COPY" for word in words[:-1]}

    (package,) = wheel["packages"]
    linked = {path.name for path in (ROOT / package).iterdir() if path.is_symlink()}

    described_by = project["tool"]["hatch"]["metadata"]["hooks"]["custom"]["path"]
    carries = wheel["hooks"]["custom"]["path"]
    assert {package, *linked, described_by, carries, "docs", "README.md", "pyproject.toml"} <= copied


def test_wheel_holds_all_that_is_imported_or_read(tmp_path):
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", tmp_path],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")

    held = set(zipfile.ZipFile(wheel).namelist())

    source = {"hookonce/__init__.py", "hookonce/late_names.py", "hookonce/py.typed"}
    for package in ("jobs", "providers", "receiver"):
        source |= {
            f"hookonce/{path.relative_to(ROOT).as_posix()}"
            for path in (ROOT / package).rglob("*")
            if path.suffix in {".py", ".json"}
        }
    assert source <= held
    assert {name.split("/")[0] for name in held if ".dist-info/" not in name} == {"hookonce"}


def test_image_ends_as_a_user_without_rights():
    names = [name for name, _ in instructions()]
    last_stage = instructions()[len(names) - 1 - names[::-1].index("FROM") :]
    users = [words for name, words in last_stage if name == "USER"]

    assert users == [[OURS]]
    assert ("ENTRYPOINT", ['["hookonce"]']) in last_stage
    assert any(name == "HEALTHCHECK" and "/livez" in " ".join(words) for name, words in last_stage)


def test_image_installs_by_hash_and_without_the_embedded_servers():
    runs = " ".join(" ".join(words) for name, words in instructions() if name == "RUN")
    project = tomllib.loads(text("pyproject.toml"))["project"]

    assert "--require-hashes --requirement requirements-run.lock" in runs
    assert not {plain(each) for each in project["optional-dependencies"]["embedded"]} & set(
        pins("requirements-run.lock")
    )


@pytest.mark.parametrize("lock", LOCKS)
def test_lock_holds_names_versions_and_hashes_only(lock):
    shapes = (r"#.*", r"    #.*", r"[a-z0-9.-]+==\S+( ; .+)? \\", r"    --hash=sha256:[0-9a-f]{64}( \\)?")

    for line in text(lock).splitlines():
        assert any(re.fullmatch(shape, line) for shape in shapes), line
        assert "://" not in line
        assert not re.search(r"(^|\s)/", line), line


def test_locks_agree_and_cover_the_project():
    project = tomllib.loads(text("pyproject.toml"))["project"]
    optional = project["optional-dependencies"]
    wanted = {plain(each) for each in [*project["dependencies"], *optional["dev"], *optional["embedded"]]}

    everything, running = pins("requirements.lock"), pins("requirements-run.lock")

    assert running.items() <= everything.items()
    assert wanted - {OURS} <= set(everything)
    assert {plain(each) for each in [*project["dependencies"], "hatchling"]} <= set(running)


def test_make_knows_its_targets():
    targets = ["demo", "test", "dev", "lint", "bench", "docs-site", "lock", "release-check", "clean"]

    assert make("--dry-run", *targets).returncode == 0


@pytest.mark.parametrize(
    ("python", "said"), [("", "no Python >= 3.11 found"), ("false", "false is older than Python 3.11")]
)
def test_make_says_so_when_python_will_not_do(tmp_path, python, said):
    made = make("demo", f"PYTHON={python}", f"VENV={tmp_path}/venv")

    assert made.returncode != 0
    assert said in made.stderr
    assert list(tmp_path.iterdir()) == []


def test_ci_script_can_be_run():
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    assert "make test" in text(".ci/run")
