import subprocess
import sys

import pytest

from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.config.servers import ledger_url
from hookonce.receiver.config.settings import load_settings

FILE = '[receiver]\ndatabase_url = "postgresql://file/db"\n'
THERE = "postgresql://there/db"


@pytest.mark.parametrize(
    ("text", "variables"),
    [(FILE, {}), (FILE, {"DATABASE_URL": THERE}), ("", {"DATABASE_URL": THERE})],
    ids=["file", "both", "variable"],
)
def test_ledger_is_found_where_the_whole_configuration_says_it_is(tmp_path, text, variables):
    (tmp_path / "hookonce.toml").write_text(text)
    environ = {"HOOKONCE_CONFIG": str(tmp_path / "hookonce.toml"), "HOOKONCE_DATA": str(tmp_path)} | variables

    assert ledger_url(environ) == load_settings(environ).database_url


def test_ledger_is_found_beside_mistakes_about_other_things(tmp_path):
    (tmp_path / "hookonce.toml").write_text(f"{FILE}max_bdy = 1\n")

    assert ledger_url({"HOOKONCE_CONFIG": str(tmp_path / "hookonce.toml")}) == "postgresql://file/db"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[receiver]\ndatabase_url = 5432\n", "expected text"),
        ("[receiver]\ndatabase_url = 'localhost'\n", "the address of PostgreSQL is not one"),
        ("receiver = 1\n", "no PostgreSQL to use"),
        ("[receiver\n", "is not valid TOML"),
    ],
)
def test_ledger_that_cannot_be_found_is_told_from_what_is_missing(tmp_path, text, said):
    (tmp_path / "hookonce.toml").write_text(text)

    with pytest.raises(ConfigError, match=said):
        ledger_url({"HOOKONCE_CONFIG": str(tmp_path / "hookonce.toml"), "HOOKONCE_DATA": str(tmp_path)})


@pytest.mark.parametrize("module", ["events", "tail"])
def test_listing_starts_without_what_only_the_whole_configuration_needs(module):
    program = (
        f"import sys, hookonce.receiver.cli.commands.{module}"
        "; print({'pydantic', 'redis'} & sys.modules.keys())"
    )

    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert shown.stdout == "set()\n"
