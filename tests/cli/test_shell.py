import subprocess
import sys
from ast import literal_eval

import pytest

from hookonce.receiver.cli.output import tables
from hookonce.receiver.cli.output.exits import Exit
from hookonce.receiver.vocabulary import EXITS


@pytest.fixture
def completed(monkeypatch, hookonce):
    """Complete the last of some words, as bash asks for it."""

    def complete(*words):
        monkeypatch.setenv("COMP_WORDS", " ".join(["hookonce", *words]))
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        monkeypatch.setenv("_HOOKONCE_COMPLETE", "bash_complete")
        found = hookonce()
        assert (found.code, found.err) == (0, "")
        return [line.partition(",")[2] for line in found.lines if line]

    return complete


@pytest.mark.usefixtures("inbox")
def test_shell_completes_names_from_the_configuration_and_the_ledger(completed, stored):
    stored("evt_1", runs=[("app.credit", "done", 1)])
    stored("evt_2")

    assert completed("ev") == ["events"]
    assert completed("events", "li") == ["list"]
    assert completed("events", "list", "--source", "s") == ["stripe"]
    assert completed("replay", "--status", "de") == ["dead"]
    assert completed("trigger", "stripe", "invoice.pay") == ["invoice.payment_failed"]
    assert completed("trigger", "github", "work") == ["workflow_job.completed", "workflow_run.completed"]
    assert completed("pause", "") == ["github", "stripe", "app.credit"]
    assert completed("events", "show", "evt") == ["evt_2", "evt_1"]
    assert "shopify" in completed("explain", "--provider", "shop")


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("url", ["", "postgresql://u:p@127.0.0.1:1/x"])
def test_shell_completes_what_it_can_when_the_servers_are_away(completed, monkeypatch, url):
    monkeypatch.setenv("DATABASE_URL", url)

    assert completed("pause", "") == ["github", "stripe"]
    assert completed("events", "show", "evt") == []


@pytest.mark.usefixtures("place")
def test_shell_completes_nothing_with_a_broken_configuration(completed, place):
    (place / "hookonce.toml").write_text("[[[")

    assert completed("pause", "") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_the_script_of_a_shell(hookonce, shell):
    printed = hookonce("completion", shell)

    assert printed.code == 0
    assert f"_HOOKONCE_COMPLETE={shell}_complete" in printed.out.decode()


def test_exits_lists_every_code_with_its_meaning(hookonce):
    lines = hookonce("help", "exits").lines

    assert [line.split()[0] for line in lines[1:]] == [str(int(code)) for code in Exit]
    assert all(any(EXITS[code.name] in line for line in lines) for code in Exit)


def test_table_has_no_color_when_no_color_is_set(monkeypatch, capsys):
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)

    tables.show(["status"], [["dead"]])

    assert "\x1b[" not in capsys.readouterr().out


def test_completion_of_a_command_imports_no_other(place):
    (place / ".env").write_text("DATABASE_URL=postgresql://localhost/shop\n", encoding="utf-8")
    script = (
        "import os, sys; sys.argv = ['hookonce']; os.environ |= {'COMP_WORDS': 'hookonce ', 'COMP_CWORD': '1', "
        "'_HOOKONCE_COMPLETE': 'bash_complete'}\n"
        "from hookonce.receiver.cli import main\n"
        "try: main()\n"
        "finally: print([name for name in sys.modules if name.startswith(('psycopg', 'rich', 'flask'))],"
        " file=sys.stderr)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], cwd=place, capture_output=True, text=True, check=False
    )

    assert "plain,events" in ran.stdout.splitlines()
    assert ran.stderr.strip() == "[]"


OURS = "hookonce.receiver."
SLOW = {"psycopg", "pydantic", "flask", "rich", "requests", "difflib"}


@pytest.mark.usefixtures("inbox")
@pytest.mark.parametrize(
    ("command", "said", "slow"),
    [
        (["--help"], "events", SLOW),
        (
            ["events", "list"],
            "evt_1",
            {"alembic", "flask", "gevent", "requests", "rich", "rq", "sqlalchemy"}
            | {f"{OURS}{name}" for name in ("config.settings", "intake", "ledger.pauses", "ledger.runs")},
        ),
    ],
    ids=["help", "listing"],
)
def test_command_imports_no_more_than_it_needs(stored, command, said, slow):
    stored("evt_1")
    script = (
        f"import sys; sys.argv = ['hookonce', *{command}]\n"
        "from hookonce.receiver.cli import main\n"
        "try: main()\n"
        "finally: print(sorted(sys.modules), file=sys.stderr)"
    )

    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)

    assert said in ran.stdout, ran.stderr
    assert slow.isdisjoint(literal_eval(ran.stderr))
