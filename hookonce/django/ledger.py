"""The database that Django and hookonce share: its entry in DATABASES, its alias, and whether that leads to the ledger.

psycopg2 can't: a run's end is written by hookonce, with psycopg 3, on the connection that the ORM has used.
"""

import secrets
from typing import Any
from urllib.parse import quote, urlencode

import psycopg
from django.conf import settings
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.base.creation import TEST_DATABASE_PREFIX

from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.config.server_urls import USUAL_SCHEMA, libpq_url, schema_of
from hookonce.receiver.config.servers import NO_POSTGRESQL, ledger_schema, ledger_url
from hookonce.receiver.ledger.database import connections as ledger
from hookonce.receiver.ledger.database import functions, schema

_ENTRY = {"dbname": "NAME", "user": "USER", "password": "PASSWORD", "host": "HOST", "port": "PORT"}
_NOWHERE = {"ENGINE": "hookonce.django.nowhere", "NAME": "hookonce", "HOST": "nowhere"}
"""An entry that nothing names a database for."""
_OF_A_URL = (
    "host",
    "port",
    "sslmode",
    "sslrootcert",
    "sslcert",
    "sslkey",
    "service",
    "passfile",
    "target_session_attrs",
)
"""Parameters of libpq that say where a database is, and how it is reached."""
_NEEDED = {
    "queue": ("SELECT", "UPDATE", "DELETE"),
    "runs": ("INSERT",),
    "run_logs": ("INSERT",),
    "guards": ("SELECT", "INSERT", "DELETE"),
}
"""Privileges that the end of a run needs, by table."""
_LACKS = """
SELECT count(*) FROM unnest(%s::text[], %s::text[]) AS needed (name, privilege)
WHERE NOT EXISTS (
    SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = %s AND c.relname = needed.name AND has_schema_privilege(n.oid, 'USAGE')
          AND has_table_privilege(c.oid, needed.privilege))
"""


def ledger_database(**options: Any) -> dict[str, Any]:  # noqa: ANN401  Django's own settings
    """Return an entry of DATABASES that leads where DATABASE_URL or hookonce.toml does, with more settings of Django's.

    Where nothing says where that is, settings are imported all the same (`check`, an image's build): whoever connects
    is told what is missing. Raises `ConfigError` for an address that is none.
    """
    try:
        entry, rest = parts_of(ledger_url())
    except ConfigError as error:
        if error.mistakes != [NO_POSTGRESQL]:
            raise
        entry, rest = _NOWHERE, {}
    return {
        "ENGINE": "django.db.backends.postgresql",
        **entry,
        "OPTIONS": {**rest, **options.pop("OPTIONS", {})},
        **options,
    }


def ledger_alias() -> str:
    """Return the alias of DATABASES that leads to the ledger: the setting HOOKONCE_DATABASE, or `default`."""
    return str(getattr(settings, "HOOKONCE_DATABASE", "default"))


def table(name: str) -> str:
    """Return how `db_table` names a table of the ledger: with its schema, quoted, so that Django adds nothing."""
    try:
        place = ledger_schema()
    except ConfigError:  # `manage.py check` says what is wrong
        place = USUAL_SCHEMA
    return f'"{place}"."{name}"'


def parts_of(url: str) -> tuple[dict[str, str], dict[str, Any]]:
    """Return what an entry of DATABASES says of a URL: its names of Django's, and what belongs in OPTIONS."""
    found = psycopg.conninfo.conninfo_to_dict(libpq_url(url))
    entry = {_ENTRY[name]: str(value) for name, value in found.items() if name in _ENTRY}
    return entry, {name: value for name, value in found.items() if name not in _ENTRY}


def url_of(database: BaseDatabaseWrapper) -> str:
    """Return the URL of the database that a connection of Django's leads to, as libpq takes it."""
    found = database.get_connection_params()
    user, password = (quote(str(found.get(name) or ""), safe="") for name in ("user", "password"))
    account = f"{user}{':' + password if password else ''}@" if user else ""
    where = urlencode({name: found[name] for name in _OF_A_URL if found.get(name)})
    return f"postgresql://{account}/{quote(str(found.get('dbname') or ''), safe='')}{'?' + where if where else ''}"


def is_of_tests(database: BaseDatabaseWrapper) -> bool:
    """Whether a connection leads to a database that Django's test runner has made, to go by its name."""
    name, named = database.settings_dict["NAME"], database.settings_dict["TEST"]["NAME"]
    return bool(name) and (name.startswith(TEST_DATABASE_PREFIX) or name == named)


def require_shared(alias: str, url: str, *, asks_for_rights: bool = True) -> None:
    """Raise `ConfigError` unless an alias of DATABASES is the ledger's database, reached by psycopg 3, with rights.

    Raises `LedgerUnavailable`, or Django's `OperationalError`, where one of both does not answer.
    """
    if alias not in connections:
        raise ConfigError([f"DATABASES has no '{alias}'; it has {', '.join(sorted(connections))}"])
    database = connections[alias]
    called = f"DATABASES['{alias}']"
    if database.vendor != "postgresql":
        raise ConfigError(
            [f"{called} is {database.display_name}; expected PostgreSQL, where the ledger lies"]
        )
    database.ensure_connection()
    driver = database.connection
    if not isinstance(driver, psycopg.Connection):
        kind = type(driver).__module__.partition(".")[0]
        mistake = f"{called} is reached by {kind}; expected psycopg 3, which Django 4.2 and later takes if it is there"
        raise ConfigError([mistake])
    _require_same(called, driver, url)
    if asks_for_rights:
        _require_rights(called, driver, schema_of(url))


def _require_same(called: str, driver: psycopg.Connection[Any], url: str) -> None:
    """Lock a number in the ledger's database: only there somebody else finds it locked."""
    key = secrets.randbits(62)
    with ledger.connect(url) as ours, ours.transaction(), driver.transaction():
        ours.execute("SELECT pg_advisory_xact_lock(%s)", [key])
        row = psycopg.Cursor(driver).execute("SELECT pg_try_advisory_xact_lock(%s)", [key]).fetchone()
        if row and row[0]:
            mistake = (
                f"{called} is the database {_name(driver)}, and the ledger lies in {_name(ours)}; name the alias that "
                "leads there (--database), or set DATABASE_URL to where the models are"
            )
            raise ConfigError([mistake])


def _require_rights(called: str, driver: psycopg.Connection[Any], place: str) -> None:
    pairs = [(name, privilege) for name, privileges in _NEEDED.items() for privilege in privileges]
    names, privileges = zip(*pairs, strict=True)
    row = psycopg.Cursor(driver).execute(_LACKS, [list(names), list(privileges), place]).fetchone()
    if row and row[0] and not _ends_by_functions(driver, place):
        grants = [f"{', '.join(privileges)} ON {place}.{name}" for name, privileges in _NEEDED.items()]
        mistake = (
            f"{called}: role {driver.info.user} can't write the end of a run; have `hookonce db roles --django "
            f"{driver.info.user}` let it, or GRANT USAGE ON SCHEMA {place}, {', '.join(grants)} to it"
        )
        raise ConfigError([mistake])


def _ends_by_functions(driver: psycopg.Connection[Any], place: str) -> bool:
    try:
        with driver.transaction():
            return functions.are_needed(schema.cursor(driver, place))
    except psycopg.errors.InsufficientPrivilege:  # not even the schema is its to look into
        return False


def _name(connection: psycopg.Connection[Any]) -> str:
    info = connection.info
    return f"'{info.dbname}' at {info.host or 'a local socket'}:{info.port}"
