"""Shared parts of all pages: the blueprint, who may see it, its headers, and what a failure looks like.

Nothing is shown without a session, nothing beyond what the scopes of its token allow, and nothing is changed without
the session's form token. The policy allows no
script and no style but our files: what a sender wrote into a field stays text, whatever we get wrong.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from io import BytesIO
from threading import BoundedSemaphore
from typing import Any, TypeVar
from urllib.parse import urlencode

import psycopg
from flask import (
    Blueprint,
    Response,
    abort,
    current_app,
    g,
    make_response,
    redirect,
    render_template,
    request,
    url_for,
)
from werkzeug.exceptions import HTTPException

from hookonce.providers import Reason, Rejected
from hookonce.receiver.config.settings import Settings
from hookonce.receiver.dashboard.sessions import Session, Sessions
from hookonce.receiver.dashboard.sign_in_throttle import SignInThrottle
from hookonce.receiver.desk.models import RequestModel
from hookonce.receiver.desk.refusals import Conflict, Forbidden, NotFound, Refused, Unavailable
from hookonce.receiver.desk.registry import Action, Answer, Desk, Octets
from hookonce.receiver.intake.pipeline import Intake
from hookonce.receiver.ledger.access import dashboard_sessions
from hookonce.receiver.ledger.access.api_tokens import Scope
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.database.connections import LedgerUnavailable
from hookonce.receiver.logs import limited
from hookonce.receiver.redis.workers import notify
from hookonce.receiver.web.body import SMALL_BODY, MemoryBudget, Reservation, read_wsgi_body

log = limited(__name__)

A = TypeVar("A", bound=Answer)
EXTENSION = "hookonce.admin"
COOKIE = "hookonce_admin"
MAX_CONNECTIONS = 8
"""To PostgreSQL at once, per process: whoever looks must not keep deliveries from being stored."""
LOCK_TIMEOUT = timedelta(seconds=2)
"""How long a page waits for a connection that is free."""
STATEMENT_TIMEOUT = timedelta(seconds=5)
MAX_FORM_SIZE = SMALL_BODY
FORM_TOKEN = "form_token"  # noqa: S105  a field's name
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_REFUSED: Mapping[type[Refused], tuple[int, str]] = {
    NotFound: (404, "There is no such thing"),
    Conflict: (409, "That can't be done now"),
    Unavailable: (503, "Something is missing here"),
    Forbidden: (403, "This session may not do that"),
    Refused: (400, "That can't be read"),
}
_OPEN = frozenset({"admin.static", "admin.sign_in", "admin.enter"})
_NEEDS: Mapping[str, Scope] = {
    **dict.fromkeys(
        ("replay", "discard", "replay_chosen", "decide", "bulk_start", "bulk_stop", "bulk_go_on", "mark"),
        Scope.REPLAY,
    ),
    **dict.fromkeys(
        ("send_again", "send_edited", "edit", "send_test_event", "test_alert", "reverify", "pause", "resume"),
        Scope.ADMIN,
    ),
}
"""Scopes that pages need beside those of their actions; any other page needs `read`."""

admin = Blueprint("admin", __name__, url_prefix="/admin", template_folder="templates", static_folder="static")


class SignedOut(Exception):  # noqa: N818  what was found
    """The session of this request was ended by whoever began it."""


@dataclass(frozen=True)
class DashboardContext:
    """The context of the pages of one process."""

    settings: Settings
    intake: Intake
    sessions: Sessions
    attempts: SignInThrottle
    connection_slots: BoundedSemaphore = field(default_factory=lambda: BoundedSemaphore(MAX_CONNECTIONS))

    @contextmanager
    def ledger(self) -> Iterator[psycopg.Connection]:
        """Connect to the ledger, in autocommit mode, for as long as the block lasts; some at once, no more.

        Raises `LedgerUnavailable`, and `SignedOut` for a cookie that somebody has kept.
        """
        if not self.connection_slots.acquire(timeout=LOCK_TIMEOUT.total_seconds()):
            raise LedgerUnavailable("too many pages are being looked at; try again")
        try:
            with connections.connect(self.settings.database_url, statement=STATEMENT_TIMEOUT) as connection:
                if "session" in g and dashboard_sessions.has_ended(
                    connection, current().id, current().token_id
                ):
                    raise SignedOut
                yield connection
        finally:
            self.connection_slots.release()

    @contextmanager
    def desk(self) -> Iterator[Desk]:
        """Ask the desk on a connection of `ledger`, for who makes this request; workers hear of what is due."""
        with self.ledger() as connection:
            desk = Desk(self.settings, connection, actor(), current().token, self.intake)
            yield desk
        if desk.notifies_workers:
            notify(self.settings.redis_url)


def context() -> DashboardContext:
    """Return the context of the application that answers this request."""
    found = current_app.extensions[EXTENSION]
    if not isinstance(found, DashboardContext):
        raise TypeError("the dashboard was not attached to this application")
    return found


def ask(action: Action[A], /, **models: RequestModel) -> A:
    """Ask the desk one thing; a refusal becomes a page that says it. Raises: `Refused`."""
    with context().desk() as here:
        return here.ask(action, **models)


def to_page(page: str, /, **named: Any) -> Response:  # noqa: ANN401  what `url_for` takes
    """Lead to a page by its endpoint and the fields of its address, after a form was sent."""
    return make_response(redirect(url_for(f"admin.{page}", **named), 303))


def file_of(octets: Octets) -> Response:
    """Return a body as a file, which no browser shows."""
    answer = Response(octets.body, content_type="application/octet-stream")
    answer.headers["Content-Disposition"] = f'attachment; filename="{octets.name}"'
    return answer


def actor() -> str:
    """Return who makes this request, for the audit."""
    return current().who


def current() -> Session:
    """Return the session of this request."""
    session = g.get("session")
    if not isinstance(session, Session):
        abort(401)
    return session


def may(page: str) -> bool:
    """Whether the session may open a page, or send its form: what it may not is not offered, and refused."""
    scope = _NEEDS.get(page, Scope.READ)
    return page in {"leave", "operations", "operation", "operate"} or current().token.allows(scope)


def is_fragment() -> bool:
    """Whether a page asks for a part of itself."""
    return "HX-Request" in request.headers


@admin.before_request
def _guard() -> Response | None:
    if request.endpoint not in _OPEN:
        g.session = context().sessions.read(request.cookies.get(COOKIE, ""))
        if g.session is None:
            return _to_sign_in()
    if request.method == "POST":
        _read_form()
    if request.endpoint in _OPEN:
        return None
    if not may(str(request.endpoint).removeprefix("admin.")):
        abort(403, "The token of this session lacks the scope for that.")
    if request.method == "POST" and not context().sessions.is_form_token(
        g.session, request.form.get(FORM_TOKEN, "")
    ):
        abort(403, "This form is of another session. Load the page again, then repeat what you did.")
    return None


def _read_form() -> None:
    """Read a form as deliveries are read: whoever lets it drip in does not hold the connection for long."""
    try:
        with Reservation(MemoryBudget(0)) as reservation:
            body = read_wsgi_body(request.environ, MAX_FORM_SIZE, reservation)
    except Rejected as error:
        abort(413 if error.reason is Reason.TOO_LARGE else 400, error.detail)
    request.environ.update({"wsgi.input": BytesIO(body), "CONTENT_LENGTH": str(len(body))})


@admin.errorhandler(SignedOut)
def _to_sign_in(_error: SignedOut | None = None) -> Response:
    back = request.full_path.rstrip("?") if request.method == "GET" and not is_fragment() else ""
    where = "/admin/sign-in" + (f"?{urlencode({'next': back})}" if back not in {"", "/admin/"} else "")
    if is_fragment():
        return Response(status=401, headers={"HX-Redirect": where})
    answer = make_response(redirect(where, 303))
    if request.method == "POST":
        answer.headers["Connection"] = "close"  # its body was not read
    return answer


@admin.after_request
def _secure(response: Response) -> Response:
    response.headers.update(HEADERS)
    if request.endpoint == "admin.static":
        response.headers["Cache-Control"] = "public, max-age=31536000, immutable"  # its URL names its content
    else:
        response.headers["Cache-Control"] = "no-store"
        response.vary.add("HX-Request")
    return response


@admin.context_processor
def _for_every_page() -> dict[str, Any]:
    session = g.get("session")
    return {
        "session": session,
        "form_token": context().sessions.form_token(session) if session else "",
        "here": request.endpoint or "",
        "may": may,
        "now": datetime.now(UTC),
    }


@admin.errorhandler(HTTPException)
def _http_error(error: HTTPException) -> tuple[str, int] | HTTPException:
    if error.code is None or error.code < 400:  # noqa: PLR2004  a redirect
        return error
    return _error_page(error.code, error.name, error.description or "")


@admin.errorhandler(Refused)
def _refused(error: Refused) -> tuple[str, int]:
    """Say why the desk does not do what was asked, in its own words."""
    status, title = next(said for kind, said in _REFUSED.items() if isinstance(error, kind))
    return _error_page(status, title, f"{error}.")


@admin.errorhandler(psycopg.errors.QueryCanceled)
def _too_slow(_error: Exception) -> tuple[str, int]:
    return _error_page(
        503,
        "That took too long",
        "The ledger did not answer within a few seconds. Narrow the filter, or try again.",
    )


@admin.errorhandler(psycopg.errors.InsufficientPrivilege)
def _lacks_a_right(error: psycopg.Error) -> tuple[str, int]:
    log.error("a page lacks a right: %s; `hookonce db roles --desk` gives it", error.diag.message_primary)
    return _error_page(
        503,
        "This receiver may not read the ledger",
        "Its role in PostgreSQL may not read that; its log says more.",
    )


@admin.errorhandler(psycopg.Error)
@admin.errorhandler(LedgerUnavailable)
def _ledger_unavailable(error: Exception) -> tuple[str, int]:
    log.warning("a page failed: %s", type(error).__name__)
    return _error_page(
        503,
        "The ledger does not answer",
        "PostgreSQL can't be reached just now; senders are told to retry.",
    )


@admin.errorhandler(Exception)
def _unexpected_error(error: Exception) -> tuple[str, int]:
    log.error("a page failed: %s", type(error).__name__, exc_info=error)
    return _error_page(500, "Something broke", "This is a bug in hookonce; the log has the details.")


def _error_page(status: int, title: str, text: str) -> tuple[str, int]:
    return render_template("admin/trouble.html", title=title, text=text, status=status), status


@admin.get("/<path:rest>")
def unknown_page(rest: str) -> Response:  # noqa: ARG001  any path that no page has
    """Answer for what is not there, in the pages' own style."""
    abort(404, "There is no such page.")
