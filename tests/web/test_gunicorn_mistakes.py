"""What `hookonce serve` and gunicorn say of a configuration that can't be used: the mistake, and no traceback."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.page_commands import clean_environ

SERVERS = {"DATABASE_URL": "postgresql://127.0.0.1:1/nothing", "REDIS_URL": "redis://127.0.0.1:1/0"}


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
