import shlex
import sys

import click
import pytest

from hookonce.receiver.cli import AT_A_DISTANCE, COMMANDS, FURTHER, SHOWN, cli, main
from hookonce.receiver.cli.output import tables, terminal_tables
from hookonce.receiver.desk.refusals import WORDS_FOR_COMMANDS
from tests.support import terminal
from tests.support.for_each import for_each


@for_each(sorted(COMMANDS))
def test_command_explains_itself(name, hookonce):
    explained = hookonce(name, "--help")

    assert explained.code == 0
    assert f" {name} " in explained.lines[0]
    assert not any(line.endswith("...") for line in explained.lines[1:])


def test_table_on_a_terminal_reads_no_markup_and_prints_no_escape(monkeypatch, capsys):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)

    tables.show(["name"], [["[red]a[/red] \x1b]0;x\x07"], ["q" * 100]])

    out = capsys.readouterr().out
    assert "[red]a[/red] \\x1b]0;x\\x07" in out
    assert "\x1b]0" not in out
    assert out.count("q") == 100  # folded, not cut


def test_table_without_a_row_is_its_heading():
    (heading,) = terminal_tables.lines(["type", "status"], [], 80)

    assert click.unstyle(heading) == "TYPE  STATUS"


@pytest.mark.parametrize("columns", [("id", "status", "what"), ("name", *("a column",) * 9)])
def test_table_fits_its_terminal_and_shows_ids_whole(columns):
    rows = [["evt_" + "1" * 40, *("dead" if name == "status" else "some words " * 3 for name in columns[1:])]]

    found = [click.unstyle(line) for line in terminal_tables.lines(columns, rows, 80)]

    assert max(map(len, found)) <= 80
    assert any("evt_" + "1" * 40 in line for line in found)
    assert sum(line.count("words") for line in found) == 3 * sum(
        name not in {"id", "name", "status"} for name in columns
    )


@pytest.mark.parametrize("columns", [("id", "what", "at", "none"), ("id", *("a column",) * 9)])
def test_table_longer_than_a_screen_is_one_line_an_entry(columns):
    texts = {"id": "12345678", "at": "2026-11-29 16:38:23Z", "none": "-"}
    rows = [[texts.get(name, "some words " * 9) for name in columns]] * 40

    found = [click.unstyle(line) for line in terminal_tables.lines(columns, rows, 80)]

    assert max(map(len, found)) <= 80
    assert [line.startswith("12345678  some wo") for line in found[1:41]] == [True] * 40
    assert all(texts["at"] in line for line in found[1:41]) == ("at" in columns)
    assert "NONE" not in found[0]
    assert [line.startswith("a wider terminal shows a column") for line in found[41:]] == [True] * (
        len(columns) > 4
    )


@pytest.mark.parametrize(("said", "is_colored"), [("1", False), ("", True)])
@pytest.mark.usefixtures("place")
def test_no_color_holds_for_lines_on_a_terminal(hookonce, monkeypatch, said, is_colored):
    monkeypatch.setattr("click.utils.should_strip_ansi", lambda _stream, color: color is False)
    monkeypatch.setenv("NO_COLOR", said)

    ran = hookonce("doctor")

    assert (b"\x1b[31mfail" in ran.out) is is_colored
    assert b"fail" in ran.out


def test_every_command_is_in_one_group_of_the_help():
    grouped = [name for groups in (SHOWN, FURTHER) for names in groups.values() for name in names]

    assert sorted([*grouped, "help"]) == sorted(COMMANDS)
    assert COMMANDS.keys() >= AT_A_DISTANCE


def test_help_shows_fifteen_commands_by_what_people_come_for_and_ends_with_examples(hookonce):
    lines = hookonce("--help").lines

    assert [line[:-1] for line in lines if line.rstrip(":") in SHOWN] == list(SHOWN)
    assert sum(map(len, SHOWN.values())) == 15
    assert lines[lines.index("  Examples:") + 1].strip().startswith("hookonce init")
    assert max(map(len, lines)) <= 80
    assert len(lines) <= 42


def test_all_commands_are_one_level_down(hookonce):
    lines = hookonce("help").lines

    assert {line.split()[0] for line in lines if line[:2] == "  " != line[2:4]} == COMMANDS.keys() - {"help"}
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("command", [("trigger",), ("events", "list"), ("replay",), ("dev",)], ids=" ".join)
def test_examples_of_a_command_are_accepted_by_it(hookonce, command):
    lines = [line.strip() for line in hookonce(*command, "--help").lines]
    examples = lines[lines.index("Examples:") + 1 :]

    assert examples
    for line in examples:
        context = click.Context(cli)
        found, words = cli, shlex.split(line)[1:]
        while isinstance(found, click.Group):
            found = found.get_command(context, words.pop(0))
        found.make_context("hookonce", words)


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("rates", "limits"),
        ("breakers", "limits"),
        ("verify", "explain"),
        ("exits", "help exits"),
        ("man", "help NAME"),
        ("discard", "events discard"),
        ("retry 4", "replay"),
        ("dead", "events list"),
        ("logs 4", "events show"),
        ("migrate", "db upgrade"),
        ("events retry 4", "replay"),
        ("events delete 4", "events erase"),
        ("events get 4", "events show"),
        ("issues resolve", "issues fix"),
        ("tokens add", "tokens create"),
    ],
)
def test_another_word_for_a_command_leads_to_it(hookonce, words, meant):
    ran = hookonce(*words.split())

    assert ran.code == 2
    assert f"; use `hookonce {meant}`" in ran.err
    assert "did you mean" not in ran.err


def test_other_words_are_no_commands_and_lead_to_some():
    context = click.Context(cli)
    for command, words in WORDS_FOR_COMMANDS.items():
        found = cli
        for name in command.replace(" NAME", "").replace(" exits", "").split()[1:]:
            found = found.get_command(context, name)
        assert found is not None, command
        assert not set(words.split()) & set(cli.list_commands(context)), command


@pytest.mark.parametrize(
    "words", [(), ("events",), ("db",), ("steps",)], ids=lambda words: " ".join(words) or "alone"
)
def test_group_alone_prints_its_help_and_is_no_mistake(hookonce, words):
    ran = hookonce(*words)

    assert (ran.code, ran.err) == (0, "")
    assert ran.lines == hookonce(*words, "--help").lines


@pytest.mark.parametrize(
    ("command", "first"),
    [
        ([], "Usage: hookonce"),
        (["--help"], "Usage: hookonce"),
        (["replay", "-h"], "Usage: hookonce replay"),
        (["help", "replay"], "Usage: hookonce replay"),
        (["help"], "Try:"),
    ],
    ids=" ".join,
)
def test_help_begins_with_its_beginning_on_a_terminal(command, first):
    rows, is_paged = terminal.screen(*command)

    assert (rows[0].startswith(first), is_paged) == (True, True)


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(
    ("words", "shown"), [(["dev", "--", "worker.py", "--help"], "begun\n"), (["dev", "--help"], "")]
)
def test_command_is_shown_at_once_though_a_program_of_the_user_s_is_asked_for_help(
    monkeypatch, capsys, words, shown
):
    at_once = []

    def command(**_):
        click.echo("begun")
        at_once.append(capsys.readouterr().out)

    monkeypatch.setattr("sys.argv", ["hookonce", *words])
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setattr(cli, "main", command)

    with pytest.raises(SystemExit):
        main()

    assert at_once == [shown]
