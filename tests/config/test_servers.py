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


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("pgbouncer=true&connection_limit=1", "does not know: connection_limit; remove"),
        ("schema=public", "options=-csearch_path%3DNAME"),
        ("sslmode=require&pool_timeout=0&socket_timeout=3", "does not know: pool_timeout, socket_timeout; "),
        ("sslaccept=strict&a%20b=c", r"does not know: sslaccept, \(not a name\); "),
    ],
)
@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
def test_parameter_that_postgresql_does_not_know_is_named(tmp_path, scheme, query, said):
    url = f"{scheme}://ann:hunter2@db.example:5432/app?{query}"

    with pytest.raises(ConfigError, match=said) as refused:
        ledger_url({"DATABASE_URL": url, "HOOKONCE_DATA": str(tmp_path)})

    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    "query",
    ["", "?sslmode=require&channel_binding=require", "?pgbouncer=true", "?ssl=true&options=endpoint%3Da"],
)
def test_address_as_a_platform_gives_it_is_taken(tmp_path, query):
    url = f"postgres://ann:hunter2@db.example/app{query}"

    assert ledger_url({"DATABASE_URL": url, "HOOKONCE_DATA": str(tmp_path)}) == url


@pytest.mark.parametrize(
    "url",
    ["postgres://ann:hunter/2?deep=water@db.example/app", "postgres://ann:1/2?deep=water@db.example/app"],
)
def test_question_mark_in_a_password_names_no_parameter(tmp_path, url):
    with pytest.raises(ConfigError, match="in the password written as") as refused:
        ledger_url({"DATABASE_URL": url, "HOOKONCE_DATA": str(tmp_path)})

    assert "deep" not in str(refused.value)


@pytest.mark.parametrize("module", ["events", "tail"])
def test_listing_starts_without_what_only_the_whole_configuration_needs(module):
    program = f"import sys, hookonce.receiver.cli.commands.{module}; print({{'redis'}} & sys.modules.keys())"

    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert shown.stdout == "set()\n"
