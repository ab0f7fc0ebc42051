import pytest

from hookonce.receiver.config import dotenv_file
from hookonce.receiver.config.mistakes import ConfigError


@pytest.fixture
def dotenv(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path / ".env"


def test_file_adds_what_the_environment_lacks(dotenv):
    dotenv.write_text("# a comment\nexport A=1\nB='two words'\nC=pa$$word${A}\nEMPTY=\nNAME_ALONE\n")
    environ = {"B": "of the environment"}

    dotenv_file.load(environ)

    assert environ == {
        "A": "1",
        "B": "of the environment",
        "C": "pa$$word${A}",
        "EMPTY": "",
        "HOOKONCE_DOTENV": "A C EMPTY",
    }


def test_changed_file_takes_the_place_of_what_a_parent_has_read(dotenv):
    environ = {"KEPT": "by the environment"}
    dotenv.write_text("A=1\nB=1\nKEPT=2\n")
    dotenv_file.load(environ)
    dotenv.write_text("A=2\n")

    dotenv_file.load(environ)
    changed = dict(environ)
    dotenv.unlink()
    dotenv_file.load(environ)

    assert changed == {"KEPT": "by the environment", "A": "2", "HOOKONCE_DOTENV": "A"}
    assert environ == {"KEPT": "by the environment"}


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"A=1\n'no end\nB=2\n", r"\.env:2 is not understood"), (b"\xff", "not UTF-8")],
)
def test_file_that_can_not_be_read_changes_nothing_and_says_where(dotenv, content, said):
    dotenv.write_bytes(content)
    environ = {"A": "of the environment"}

    with pytest.raises(ConfigError, match=said):
        dotenv_file.load(environ)

    assert environ == {"A": "of the environment"}


def test_folder_of_that_name_is_no_file(dotenv):
    dotenv.mkdir()

    dotenv_file.load({})
