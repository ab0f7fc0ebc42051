"""What `hookonce serve` and gunicorn say of a configuration that can't be used: the mistake, and no traceback."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.page_commands import clean_environ

SERVERS = {"DATABASE_URL": "postgresql://127.0.0.1:1/nothing", "REDIS_URL": "redis://127.0.0.1:1/0"}

GUNICORN = ["gunicorn", "-c", "python:hookonce.receiver.web.gunicorn_conf", "--workers", "1"]
APPLICATION = "hookonce.receiver.app:from_environment()"


def run(directory, *command, **environ):
    return subprocess.run(
        [sys.executable, "-m", *command],
        cwd=directory,
        env=clean_environ(Path(sys.executable).parent) | environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_gunicorn_tells_what_is_wrong_with_the_configuration(tmp_path):
    (tmp_path / "hookonce.toml").write_text("[receiver]\nmax_bodi = 5\n")
    settings = ["-c", "python:hookonce.receiver.web.gunicorn_conf", "--bind", "unix:socket", "--workers", "1"]

    ended = run(tmp_path, "gunicorn", *settings, "hookonce.receiver.app:from_environment()", **SERVERS)

    assert ended.returncode == 4  # what gunicorn calls an application that can't be loaded
    assert "[receiver] has no setting 'max_bodi'; did you mean 'max_body'?" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("name", ["WEB_CONCURRENCY", "PORT"])
def test_serve_tells_which_variable_is_no_number(tmp_path, name):
    ended = run(tmp_path, "hookonce.receiver.cli", "serve", **SERVERS, **{name: "many"})

    assert ended.returncode == 78
    assert f"{name} is 'many'; expected a number" in ended.stderr
    assert "Traceback" not in ended.stderr


WAYS = {
    "serve": (["hookonce.receiver.cli", "serve", "--bind", "127.0.0.2:8000", "--desk", "127.0.0.1:8000"], {}),
    "serve, by the port": (
        ["hookonce.receiver.cli", "serve", "--port", "8001"],
        {"HOOKONCE_DESK": "127.0.0.1:8001"},
    ),
    "gunicorn": (
        [*GUNICORN, APPLICATION],
        {"HOOKONCE_BIND": "127.0.0.2:8000", "HOOKONCE_DESK": "127.0.0.1:8000"},
    ),
    "gunicorn, told where": (
        [*GUNICORN, "--bind", "127.0.0.2:8000", "--bind", "127.0.0.1:8000", APPLICATION],
        {"HOOKONCE_DESK": "127.0.0.1:8000"},
    ),
}


@pytest.mark.parametrize(("command", "environ"), WAYS.values(), ids=WAYS)
def test_desk_at_a_port_of_the_door_is_refused_whatever_the_hosts(tmp_path, command, environ):
    ended = run(tmp_path, *command, **SERVERS, **environ)

    assert ended.returncode == 78
    assert "expected two ports, whatever the hosts; set another with --desk or HOOKONCE_DESK" in ended.stderr
    assert "Traceback" not in ended.stderr
