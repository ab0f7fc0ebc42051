"""A database without the ledger that this version needs: the error says what was found, and the command."""

import psycopg
import pytest

from hookonce.receiver.ledger.database.schema_version import REVISION, SchemaBehind
from hookonce.receiver.monitoring.health import require_schema

FOUND = {
    "nothing": ((), "has no ledger in the schema hookonce, nor in any other"),
    "another schema": (
        ("CREATE SCHEMA elsewhere", "CREATE TABLE elsewhere.hookonce_version ()"),
        "has no ledger in the schema hookonce, one lies in elsewhere",
    ),
    "an older revision": (
        (
            "CREATE SCHEMA hookonce",
            "CREATE TABLE hookonce.hookonce_version (version_num text)",
            "INSERT INTO hookonce.hookonce_version VALUES ('0007')",
        ),
        "is at revision 0007",
    ),
}


@pytest.mark.parametrize(("statements", "said"), FOUND.values(), ids=FOUND)
def test_error_names_what_it_found_and_the_command(empty_database, statements, said):
    with psycopg.connect(empty_database, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)
        name = connection.info.dbname

    with pytest.raises(SchemaBehind) as error:
        require_schema(empty_database)

    assert f"database '{name}' {said}" in str(error.value)
    assert REVISION in str(error.value)
    assert "run `hookonce db upgrade`" in str(error.value)
