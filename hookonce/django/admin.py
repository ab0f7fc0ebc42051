"""Events, runs and failed attempts in Django's admin: to be looked at, each with a link to the console if there is one.

Lists are walked down by the ledger's ids and counted no further than `COUNTED`, searched by what an index serves, and
asked for under a time limit, so that millions of events are no matter. Bodies, headers and tracebacks are the
console's, which opens what is sealed and knows what is masked.
"""

from collections.abc import Callable, Iterable
from functools import cached_property, wraps
from typing import Any
from urllib.parse import quote

import psycopg
from django.conf import settings
from django.contrib import admin, messages
from django.core.paginator import Paginator
from django.db import connections, transaction
from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.db.utils import OperationalError, ProgrammingError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from hookonce.django.ledger import ledger_alias
from hookonce.django.models import Event, EventState, Failure, OpenRun, Outcome, Run
from hookonce.receiver.config.servers import ledger_schema
from hookonce.receiver.ledger.database import schema
from hookonce.receiver.ledger.queries.event_filter import SOURCES
from hookonce.receiver.ledger.states import EventStatus

COUNTED = 10_000
"""Rows that a list counts, and so lets be leafed through."""
_TIME_LIMIT = "5s"
"""How long a statement of the admin may take, so that none holds a web server's thread."""
_SHOWN = 100
_DIGITS = 18
"""Digits of an event's number, at most."""
_NONE = "-"


class _CountedSoFar(Paginator):  # type: ignore[misc]  # Django has no types
    """Pages of the first `COUNTED` rows."""

    @cached_property
    def count(self) -> int:
        """Return how many rows there are, `COUNTED` at most."""
        return int(self.object_list.order_by()[:COUNTED].count())


class _SourceFilter(admin.SimpleListFilter):  # type: ignore[misc]
    """The sources that the ledger has events of."""

    title = parameter_name = "source"

    def lookups(self, *_: object) -> list[tuple[str, str]]:
        return [(name, name) for name in _sources()]

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:  # noqa: ARG002  Django's
        return queryset.filter(source=self.value()) if self.value() else queryset


class _StatusFilter(admin.SimpleListFilter):  # type: ignore[misc]
    """The filter of events by their status, for those statuses that an index finds."""

    title = parameter_name = "status"
    _OPEN = "open"

    def lookups(self, *_: object) -> list[tuple[str, str]]:
        ended = (EventStatus.DEAD, EventStatus.DISCARDED, EventStatus.IGNORED)
        return [(each, each) for each in (self._OPEN, *map(str, ended))]

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:  # noqa: ARG002
        if not self.value():
            return queryset
        if self.value() == self._OPEN:
            return queryset.filter(id__in=OpenRun.objects.values("event"))
        return queryset.filter(
            id__in=Outcome.objects.filter(is_last=True, status=self.value()).values("event")
        )


def _told(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Have a view say in a line why the ledger can't be read, and lead back to the admin's front page."""

    @wraps(view)
    def looked(self: "_Reader", request: HttpRequest, *arguments: Any, **options: Any) -> HttpResponse:  # noqa: ANN401
        alias = ledger_alias()
        try:
            with transaction.atomic(using=alias):
                _limit_time(alias)
                answer = view(self, request, *arguments, **options)
                return answer.render() if hasattr(answer, "render") else answer
        except (OperationalError, ProgrammingError) as error:
            messages.error(request, _why(alias, error))
        return HttpResponseRedirect(reverse("admin:index", current_app=self.admin_site.name))

    return looked


def _limit_time(alias: str) -> None:
    """Limit the statements of this transaction, but for a limit of the project's own that is shorter."""
    with connections[alias].cursor() as cursor:
        cursor.execute(
            "SELECT set_config('statement_timeout', %s, true) WHERE"
            " current_setting('statement_timeout') = '0'"
            " OR current_setting('statement_timeout')::interval > %s::interval",
            [_TIME_LIMIT, _TIME_LIMIT],
        )


def _why(alias: str, error: Exception) -> str:
    if isinstance(error.__cause__, psycopg.errors.QueryCanceled):
        return f"the ledger did not answer within {_TIME_LIMIT}; search an event's id or number, or use the console"
    if isinstance(error.__cause__, psycopg.errors.InsufficientPrivilege):
        role = connections[alias].settings_dict.get("USER") or "of DATABASES"
        return (
            f"role {role} may not read the ledger; have its owner run "
            f"GRANT USAGE ON SCHEMA {ledger_schema()} TO {role}; "
            f"GRANT SELECT ON {', '.join(each._meta.db_table for each in _ASKED)} TO {role}"  # noqa: SLF001  Django's name
        )
    if isinstance(error.__cause__, psycopg.errors.UndefinedTable):
        return f"DATABASES['{alias}'] has no ledger; run `manage.py migrate`"
    return f"the ledger in DATABASES['{alias}'] can't be read: {error}"


_ASKED = (Event, Run, Failure, EventState, OpenRun, Outcome)


class _Reader(admin.ModelAdmin):  # type: ignore[misc]
    """Shows what `view` permits, and changes nothing."""

    paginator = _CountedSoFar
    show_full_result_count = False
    list_per_page = _SHOWN
    list_max_show_all = 0
    actions = None

    search_help_text = "the sender's id or the number of an event, whole"

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Whether it is listed: not where the alias leads to a database that can't have a ledger."""
        known = connections[ledger_alias()].vendor == "postgresql" if ledger_alias() in connections else False
        return known and bool(super().has_module_permission(request))

    def has_add_permission(self, *_: object) -> bool:
        """Nobody adds."""
        return False

    def has_change_permission(self, *_: object) -> bool:
        """Nobody changes."""
        return False

    def has_delete_permission(self, *_: object) -> bool:
        """Nobody deletes."""
        return False

    @_told
    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:  # noqa: ANN401
        """Return the list."""
        return super().changelist_view(request, extra_context)

    @_told
    def changeform_view(self, request: HttpRequest, *arguments: Any, **options: Any) -> HttpResponse:  # noqa: ANN401
        """Return the page of one."""
        return super().changeform_view(request, *arguments, **options)

    @admin.display(description="event", ordering="-event")  # type: ignore[untyped-decorator]
    def of_event(self, row: Run | Failure) -> SafeString:
        """Link to the page of the row's event."""
        return format_html('<a href="{}">{}</a>', _page_of(row.event_id), row.event)

    @admin.display(description="in the console")  # type: ignore[untyped-decorator]
    def in_console(self, row: Any) -> SafeString | str:  # noqa: ANN401  a model of ours
        """Link to the event in the console that HOOKONCE_CONSOLE names."""
        console = getattr(settings, "HOOKONCE_CONSOLE", "")
        if not console:
            return _NONE
        number = row.id if isinstance(row, Event) else row.event_id
        return format_html('<a href="{}/admin/events/{}">open</a>', console.rstrip("/"), quote(str(number)))


@admin.register(Event)
class EventAdmin(_Reader):
    """Events, the newest first; the page of one has its runs and failed attempts."""

    ordering = ("-id",)
    list_display = ("id", "source", "type", "event_id", "status", "received_at", "in_console")
    list_filter = (_SourceFilter, _StatusFilter, "is_test")
    search_fields = ("event_id",)
    fields = (
        *("id", "source", "provider", "type", "event_id", "account", "status", "deliveries"),
        *("received_at", "occurred_at", "is_test", "runs", "failures", "in_console"),
    )
    readonly_fields = ("status", "deliveries", "runs", "failures", "in_console")

    def get_queryset(self, request: HttpRequest) -> QuerySet:
        """Return events, each with what became of it."""
        state = EventState.objects.filter(id=OuterRef("id"))
        return (
            super()
            .get_queryset(request)
            .annotate(
                status=Subquery(state.values("status")[:1]),
                deliveries=Subquery(state.values("deliveries")[:1]),
            )
        )

    def get_search_results(
        self,
        request: HttpRequest,  # noqa: ARG002
        queryset: QuerySet,
        search_term: str,
    ) -> tuple[Any, bool]:
        """Return events whose id or number the term is."""
        term = search_term.strip()
        return (queryset.filter(_named(term)) if term else queryset), False

    @admin.display  # type: ignore[untyped-decorator]
    def status(self, event: Any) -> str:  # noqa: ANN401  with what it was annotated with
        """Return what became of it."""
        return str(event.status)

    @admin.display  # type: ignore[untyped-decorator]
    def deliveries(self, event: Any) -> int:  # noqa: ANN401
        """Return how often it came."""
        return int(event.deliveries)

    @admin.display  # type: ignore[untyped-decorator]
    def runs(self, event: Event) -> SafeString | str:
        """Return a line for each handler."""
        found = Run.objects.filter(event_id=event.id).order_by("handler")
        return _lines((each.handler, each.status, f"{each.attempts} attempts") for each in found)

    @admin.display(description="failed attempts")  # type: ignore[untyped-decorator]
    def failures(self, event: Event) -> SafeString | str:
        """Return a line for each of the newest failed attempts."""
        found = Failure.objects.filter(event_id=event.id).order_by("-id")[:_SHOWN]
        return _lines((each.handler, f"attempt {each.attempt}", each.error) for each in found)


class _OfEvents(_Reader):
    """An admin of rows that belong to events: a search finds them by the ids of their events."""

    search_fields = ("event",)

    def get_search_results(
        self,
        request: HttpRequest,  # noqa: ARG002
        queryset: QuerySet,
        search_term: str,
    ) -> tuple[Any, bool]:
        """Return what belongs to the events whose id or number the term is."""
        term = search_term.strip()
        if not term:
            return queryset, False
        events = list(Event.objects.filter(_named(term)).values_list("id", flat=True)[:_SHOWN])
        return queryset.filter(event__in=events), False


@admin.register(Run)
class RunAdmin(_OfEvents):
    """Runs in their last cycle, those of the newest events first."""

    ordering = ("-event", "handler")
    list_display = (
        "of_event",
        "handler",
        "status",
        "attempts",
        "due_at",
        "waits",
        "finished_at",
        "in_console",
    )
    list_display_links = None
    list_select_related = ("event",)


@admin.register(Failure)
class FailureAdmin(_OfEvents):
    """Failed attempts, the newest first."""

    ordering = ("-id",)
    list_display = ("id", "of_event", "handler", "attempt", "failed_at", "error", "in_console")
    list_select_related = ("event",)
    fields = ("id", "of_event", "handler", "cycle", "attempt", "failed_at", "error", "in_console")
    readonly_fields = ("of_event", "in_console")


def _named(term: str) -> Q:
    """Return the condition, which an index serves, that an event has this id or number."""
    named = Q(source__in=_sources(), event_id=term)
    return named | Q(id=int(term)) if term.isdecimal() and len(term) <= _DIGITS else named


def _sources() -> list[str]:
    """Return the names of the sources that the ledger has events of."""
    with connections[ledger_alias()].cursor() as cursor:
        cursor.execute(schema.named(SOURCES, ledger_schema()))
        return [name for (name,) in cursor.fetchall()]


def _page_of(event: int) -> str:
    return str(reverse("admin:hookonce_event_change", args=[event]))


def _lines(rows: Iterable[tuple[str, ...]]) -> SafeString | str:
    made = format_html_join("", "<tr><td>{}</td><td>{}</td><td>{}</td></tr>", rows)
    return format_html("<table>{}</table>", made) if made else _NONE
