"""System checks: the alias, its engine, the handlers and the view; with `--database`, the schema."""

from collections.abc import Iterator, Sequence
from typing import Any

import psycopg
from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register  # noqa: A004  Django's name
from django.db import connections
from django.urls import URLPattern, URLResolver, get_resolver

from hookonce.django import views
from hookonce.django.ledger import ledger_alias
from hookonce.django.ledger_migration import revision_in
from hookonce.django.worker import import_webhooks, require_fitting
from hookonce.jobs.drain import handlers_of
from hookonce.jobs.handlers import HandlerError
from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.config.servers import ledger_schema
from hookonce.receiver.config.settings import load_settings
from hookonce.receiver.ledger.database import schema_version
from hookonce.receiver.ledger.database.connections import LedgerUnavailable


@register(Tags.database)  # type: ignore[untyped-decorator]  # Django has no types
def schema(databases: Sequence[str] | None = None, **_: object) -> list[CheckMessage]:
    """Look whether the ledger has the tables that this version needs; only where databases may be asked.

    Raises `CommandError` for a ledger of an unreleased version: it ends the command, `migrate` above all, with a line.
    """
    alias = ledger_alias()
    if (
        alias not in (databases or ())
        or alias not in connections
        or connections[alias].vendor != "postgresql"
    ):
        return []
    try:
        found = revision_in(connections[alias])
    except (ConfigError, LedgerUnavailable, psycopg.Error) as error:
        return [
            Warning(
                f"the ledger in DATABASES['{alias}'] can't be asked for its revision: {error}",
                id="hookonce.W005",
            )
        ]
    if found is None:
        what = f"DATABASES['{alias}'] has no ledger in the schema {ledger_schema()} yet"
        does = "makes it"
    elif schema_version.is_behind(found):
        needed = schema_version.REVISION
        what = f"the ledger in DATABASES['{alias}'] is at revision {found}, and this version needs {needed}"
        does = "upgrades it"
    else:
        return []
    hint = f"`manage.py migrate` {does}, as `hookonce db upgrade` does."
    return [Warning(what, hint=hint, id="hookonce.W004")]  # no error: `migrate` begins with these checks


@register("hookonce")  # type: ignore[untyped-decorator]
def alias(**_: object) -> list[CheckMessage]:
    """Look whether the alias of the ledger is there, and leads to PostgreSQL."""
    name = ledger_alias()
    if name not in settings.DATABASES:
        said = f"HOOKONCE_DATABASE is {name!r}; DATABASES has {', '.join(sorted(settings.DATABASES)) or 'nothing'}"
        return [Error(said, id="hookonce.E001")]
    engine = str(settings.DATABASES[name].get("ENGINE", ""))
    if connections[name].vendor != "postgresql":
        said = (
            f"DATABASES['{name}'] is {engine}; the ledger needs PostgreSQL, so Django's worker runs nothing"
        )
        hint = "Use hookonce.django.ledger_database(), or set HOOKONCE_DATABASE to the alias of a PostgreSQL database."
        return [Warning(said, hint=hint, id="hookonce.W001")]
    if not _is_psycopg_3():
        said = f"DATABASES['{name}'] is reached by psycopg2; Django's worker needs psycopg 3"
        return [
            Warning(
                said,
                hint="pip install 'psycopg[binary]'; Django takes it if it is there.",
                id="hookonce.W002",
            )
        ]
    return []


@register("hookonce")  # type: ignore[untyped-decorator]
def handlers(**_: object) -> list[CheckMessage]:
    """Look whether `manage.py hookonce_worker` takes the configuration, and the handlers of all applications."""
    try:
        configured = load_settings(need_secrets=False)
        import_webhooks()
        require_fitting(handlers_of(configured))
    except ConfigError as error:
        return [Error(each, id="hookonce.E002") for each in error.mistakes]
    except HandlerError as error:
        return [Error(str(error), id="hookonce.E003")]
    return []


@register("hookonce")  # type: ignore[untyped-decorator]
def csrf(**_: object) -> list[CheckMessage]:
    """Look whether senders, who have no CSRF token, get to the view."""
    if not getattr(settings, "ROOT_URLCONF", None):
        return []
    hint = "Include hookonce.django.urls as it is, or decorate what you wrap it in with csrf_exempt."
    return [
        Error(f"{pattern} receives webhooks, and asks them for a CSRF token", hint=hint, id="hookonce.E004")
        for pattern, view in _views(get_resolver())
        if _is_ours(view) and not getattr(view, "csrf_exempt", False)
    ]


def _is_psycopg_3() -> bool:
    from django.db.backends.postgresql.psycopg_any import is_psycopg3  # noqa: PLC0415  it imports the driver

    return bool(is_psycopg3)


def _views(resolver: URLResolver, before: str = "") -> Iterator[tuple[str, Any]]:
    for each in resolver.url_patterns:
        path = f"{before}{each.pattern}"
        if isinstance(each, URLPattern):
            yield path, each.callback
        else:
            yield from _views(each, path)


def _is_ours(view: Any) -> bool:  # noqa: ANN401  whatever a project wraps it in
    while view is not None and view is not views.receive:
        view = getattr(view, "__wrapped__", None)
    return view is not None
