import psycopg
import pytest

from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.ledger.database import connections, migrate


def test_a_database_that_cannot_hold_every_language_is_refused(servers, database_url):
    narrow = "narrow_" + psycopg.conninfo.conninfo_to_dict(database_url)["dbname"]
    with psycopg.connect(servers.database_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {narrow} TEMPLATE template0 ENCODING 'SQL_ASCII'")
        try:
            with pytest.raises(ConfigError, match="SQL_ASCII, expected UTF8"):
                migrate.upgrade(psycopg.conninfo.make_conninfo(servers.database_url, dbname=narrow))
        finally:
            connection.execute(f"DROP DATABASE {narrow} WITH (FORCE)")


def test_our_transactions_see_what_others_commit_whatever_the_server_is_used_to(database_url):
    with connections.connect(database_url) as connection:
        name = connection.info.dbname
        connection.execute(f"ALTER DATABASE {name} SET default_transaction_isolation = 'serializable'")

    with connections.connect(database_url) as connection:
        assert connection.execute("SHOW transaction_isolation").fetchone() == ("read committed",)
