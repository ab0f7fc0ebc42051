import os
import stat
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from hookonce.providers.kit.registry import names
from hookonce.receiver.cli.commands import init as command
from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.config.settings import load_settings
from tests.support import forked_cli

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Run `hookonce` in a folder, with no variable of the environment but those that are given."""
    programs = tmp_path_factory.mktemp("programs")

    def run(place, *words, **environ):
        command = [programs / "hookonce", *words]
        environ = {"PATH": os.environ["PATH"], **environ}
        return subprocess.run(command, cwd=place, env=environ, capture_output=True, text=True, check=False)

    with forked_cli.hookonce(programs):
        yield run


def test_init_says_what_shows_that_each_module_is_right(tmp_path, run):
    begun = run(tmp_path, "init", "stripe", "chargify")

    assert "stripe: tested against its sender's own library (vendor SDK)\n" in begun.stderr
    assert "chargify: tested only with what we signed ourselves" in begun.stderr


def test_init_writes_a_project_that_the_other_commands_understand(tmp_path, run):
    begun = run(tmp_path, "init", "stripe", "github")
    listed = run(tmp_path, "sources", "list")
    doctor = run(tmp_path, "doctor")

    assert begun.returncode == 0, begun.stderr
    assert "hookonce trigger stripe invoice.paid" in begun.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        ".env", ".gitignore", "handlers.py", "hookonce.toml"
    ]  # fmt: skip
    assert stat.S_IMODE((tmp_path / ".env").stat().st_mode) == 0o600
    assert "http://127.0.0.1:8000/hooks/stripe" in listed.stdout
    assert "source stripe  signing secrets: 1 set" in doctor.stdout  # by .env alone
    code = "from hookonce.jobs.registration import import_handlers as i; print([h.pattern for h in i(['handlers'])])"
    handlers = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert handlers.stdout == "['invoice.paid', 'push']\n", handlers.stderr


def test_init_never_overwrites(tmp_path, run):
    mine = {".env": "A=1", ".gitignore": "*.pyc\n", "handlers.py": "# mine\n", "hookonce.toml": "# mine"}
    for name, text in mine.items():
        (tmp_path / name).write_text(text)

    begun = run(tmp_path, "init", "shopify")

    now = {name: (tmp_path / name).read_text() for name in mine}
    assert begun.returncode == 0
    assert all(now[name].startswith(text) for name, text in mine.items())
    assert now[".gitignore"] == mine[".gitignore"]
    assert '@on("shopify", ' in now["handlers.py"]
    told = [
        name for line in begun.stderr.splitlines() for name in mine if line.endswith((f"to {name}", name))
    ]
    assert sorted(told) == [".env", "handlers.py", "hookonce.toml"]
    assert "left as it is" not in begun.stderr
    assert ".gitignore does not name .env" in begun.stderr
    assert tomllib.loads(now["hookonce.toml"])["sources"]["shopify"]["secrets"] == [
        "env:SHOPIFY_WEBHOOK_SECRET"
    ]
    assert "\nSHOPIFY_WEBHOOK_SECRET=" in now[".env"]


def test_init_appends_the_senders_that_are_missing_and_no_other(tmp_path, run):
    run(tmp_path, "init", "stripe")
    before = {name: (tmp_path / name).read_text() for name in (".env", "hookonce.toml")}

    added = run(tmp_path, "init", "stripe", "github")
    after = {name: (tmp_path / name).read_text() for name in before}
    once_more = run(tmp_path, "init", "github")
    listed = run(tmp_path, "doctor")

    assert "appending [sources.github] to hookonce.toml\n" in added.stderr
    assert "appending GITHUB_WEBHOOK_SECRET to .env\n" in added.stderr
    for name, text in after.items():
        assert text.startswith(before[name])
        assert text.removeprefix(before[name]).casefold().count("stripe") == 0
        assert (tmp_path / name).read_text() == text
    assert "appending" not in once_more.stderr
    assert once_more.stderr.count(" has all of it already, and is left as it is\n") == 3
    assert "source github  signing secrets: 1 set" in listed.stdout
    assert stat.S_IMODE((tmp_path / ".env").stat().st_mode) == 0o600


@pytest.mark.parametrize("text", ["sources = {stripe = {}}\n", "not TOML\n"])
def test_init_prints_the_table_where_it_can_not_be_appended(tmp_path, run, text):
    (tmp_path / "hookonce.toml").write_text(text)

    begun = run(tmp_path, "init", "github")

    assert begun.returncode == 0
    assert "[sources.github]" in begun.stdout
    assert (tmp_path / "hookonce.toml").read_text() == text


@pytest.mark.parametrize(
    ("sender", "said"),
    [
        ("strip", "did you mean 'stripe'"),
        ("hmac", "needs more than a secret"),
        ("A B", "can't be a source's name"),
    ],
)
def test_init_says_what_it_can_not_begin_with_and_writes_nothing(tmp_path, run, sender, said):
    refused = run(tmp_path, "init", sender)

    assert refused.returncode in {2, 78}
    assert said in refused.stderr
    assert list(tmp_path.iterdir()) == []


def test_init_knows_every_sender(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    begun, refused = [], []
    for name in names(()):
        try:
            begun.append(command._source(name))  # noqa: SLF001
        except ConfigError:
            refused.append(name)
    (tmp_path / "hookonce.toml").write_text(command.project.toml(begun))

    settings = load_settings({}, need_secrets=False)

    assert len(settings.sources) == len(begun) > 200
    needed = ["adobe_sign", "hmac", "jwt", "signed", "token"]
    assert refused == needed  # what they need besides a secret is the user's to know
    compile(command.project.handlers(begun), "handlers.py", "exec")


@pytest.mark.parametrize(("outside", "listens_at"), [({}, 8123), ({"PORT": "8456"}, 8456)])
def test_every_command_reads_dotenv_and_the_environment_wins(tmp_path, run, outside, listens_at):
    (tmp_path / ".env").write_text("PORT=8123\n")
    (tmp_path / "hookonce.toml").write_text("[sources.stripe]\n")

    listed = run(tmp_path, "sources", "list", **outside)

    assert f"http://127.0.0.1:{listens_at}/hooks/stripe" in listed.stdout


def test_dotenv_that_is_not_understood_is_told_in_one_line(tmp_path, run):
    (tmp_path / ".env").write_text("'\n")

    refused = run(tmp_path, "sources", "list")

    assert refused.returncode == 78
    assert ".env:1 is not understood" in refused.stderr
    assert "Traceback" not in refused.stderr
