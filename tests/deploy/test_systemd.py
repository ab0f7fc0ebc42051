import re
import shutil
import signal
import subprocess
import sys
import urllib.request
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support import deployed
from tests.support.page_commands import clean_environ, free_port, says
from tests.support.waiting import until

HERE = "/srv/hookonce/venv/bin/hookonce"
LONG_RUNNING = ("hookonce-serve.service", "hookonce-worker.service", "hookonce-desk.service")
SECONDS = 30


@pytest.fixture
def environ(database_url, redis_url):
    own = {
        "DATABASE_URL": database_url,
        "REDIS_URL": redis_url,
        "HOOKONCE_HANDLERS": "",
        "WEB_CONCURRENCY": "1",
    }

    def of_unit(unit, **changes):
        written = deployed.environments()[deployed.units()[unit]["Service"]["EnvironmentFile"]]
        return clean_environ() | {name: own.get(name, value) for name, value in written.items()} | changes

    return of_unit


def command_of(unit, port=0):
    program, *words = deployed.units()[unit]["Service"]["ExecStart"].split()
    assert program == HERE
    words = [re.sub(":800[01]$", f":{port}", word) for word in words]
    return [sys.executable, "-m", "hookonce.receiver.cli", *words]


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd is not installed")
def test_systemd_understands_the_units(tmp_path):
    for name in deployed.units():
        text = (deployed.ROOT / "deploy" / "systemd" / name).read_text()
        (tmp_path / name).write_text(text.replace(HERE, shutil.which("true")))

    read = subprocess.run(
        ["systemd-analyze", "verify", *tmp_path.iterdir()], capture_output=True, text=True, check=False
    )

    ours = [line for line in read.stderr.splitlines() if "hookonce" in line]
    assert (read.returncode, ours) == (0, [])


def test_units_run_as_one_user_in_one_place_and_give_up_on_a_bad_configuration():
    for unit in deployed.units().values():
        service = unit["Service"]
        assert service["User"] == "hookonce"
        assert service["WorkingDirectory"] == str(Path(HERE).parents[2])
        assert service["EnvironmentFile"] in deployed.environments()
        assert service["RestartPreventExitStatus"] == "78"


def test_schema_is_upgraded_by_the_first_unit(empty_database, environ, tmp_path):
    done = subprocess.run(
        command_of("hookonce-upgrade.service"),
        env=environ("hookonce-upgrade.service", DATABASE_URL=empty_database),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    for unit in LONG_RUNNING:
        assert deployed.units()[unit]["Unit"]["Requires"] == "hookonce-upgrade.service"
        assert "hookonce-upgrade.service" in deployed.units()[unit]["Unit"]["After"]


@pytest.mark.parametrize("unit", LONG_RUNNING)
def test_unit_starts_and_stops_in_the_time_that_it_is_given(unit, environ, tmp_path):
    port, log = free_port(), tmp_path / "log"
    with log.open("w") as output:
        process = subprocess.Popen(
            command_of(unit, port),
            env=environ(unit),
            cwd=tmp_path,
            stdout=output,
            stderr=output,
            process_group=0,
        )
    try:
        if "worker" not in unit:
            until(lambda: answers(port), seconds=SECONDS, process=process)
        else:
            says(log, '"handlers"', process=process)

        process.send_signal(signal.SIGTERM)  # to the first process alone: KillMode=mixed

        assert deployed.units()[unit]["Service"]["KillMode"] == "mixed"
        assert process.wait(int(deployed.units()[unit]["Service"]["TimeoutStopSec"])) == 0, log.read_text()
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("unit", LONG_RUNNING)
def test_unit_with_a_bad_configuration_ends_with_the_status_that_is_not_tried_again(unit, environ, tmp_path):
    (tmp_path / "hookonce.toml").write_text("[receiver]\nnonsense = 1\n")

    ended = subprocess.run(
        command_of(unit, free_port()),
        env=environ(unit),
        cwd=tmp_path,
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )

    assert ended.returncode == 78


def answers(port):
    with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5) as answer:
        return answer.status == 200
    return False
