"""Signing in and out: the admin token, an API token, or the link that `hookonce dev` prints once, becomes a cookie.

A link's secret is in the URL's fragment, which no server, proxy or log ever sees; the page's script puts it into
the form and takes it out of the address.

Guessing is slowed down, but a stranger's guesses lock nobody out who has a link or a token of 32 characters or more:
these can't be guessed at any speed, so they are compared first and need no turn. A shorter token may be a phrase; there
the right guess of an address that has to wait is answered like a wrong one, or waiting would be for honest people only.
"""

import hmac
import math
import secrets
from datetime import timedelta
from urllib.parse import urlsplit

from flask import Response, make_response, redirect, render_template, request

from hookonce.receiver.dashboard.blueprint import COOKIE, actor, admin, context, current
from hookonce.receiver.dashboard.sessions import SESSION_TTL
from hookonce.receiver.ledger.access import api_tokens, audit_log, dashboard_sessions
from hookonce.receiver.ledger.access.api_tokens import Token
from hookonce.receiver.web.client_address import client_address

_FORM_COOKIE = "hookonce_sign_in"
_PATH = "/admin/sign-in"
_MAX_LINK_LENGTH = 512
_WRONG = "That is neither the admin token nor an API token."
_USED = "This link was used already, or is too old. Sign in with a token."
_AGAIN = "Please try once more."


@admin.get("/sign-in")
def sign_in() -> Response:
    """Show the form."""
    return _form("")


@admin.post("/sign-in")
def enter() -> Response:
    """Take token or link; begin a session."""
    mine = request.cookies.get(_FORM_COOKIE, "")
    if not mine or not hmac.compare_digest(mine.encode(), request.form.get("form", "").encode()):
        return _form(_AGAIN, 400)
    link = request.form.get("link", "")[:_MAX_LINK_LENGTH]
    typed = request.form.get("token", "")
    if not link and (presented := api_tokens.digest(typed)):
        with context().ledger() as connection:
            token = api_tokens.find(connection, presented)
        if token is not None:
            return _begin(token)
    is_right = _take_link(link) if link else context().sessions.is_token(typed)
    if is_right and (link or not context().sessions.is_guessable):
        return _begin()  # whatever strangers at this address have tried
    wait = context().attempts.take(_client())
    if wait > timedelta(0):  # the same answer for a right guess
        seconds = math.ceil(wait / timedelta(seconds=1))
        answer = _form(f"Too many attempts. Wait {seconds} s, then try again.", 429)
        answer.headers["Retry-After"] = str(seconds)
        return answer
    return _begin() if is_right else _form(_USED if link else _WRONG, 403)


@admin.post("/sign-out")
def leave() -> Response:
    """Take the cookie back, and copies of it."""
    with context().ledger() as connection:
        dashboard_sessions.end_session(connection, current().id)
        audit_log.note(connection, actor(), "sign-out", "dashboard", {"session": current().id[:6]})
    answer = make_response(redirect(_PATH, 303))
    answer.delete_cookie(COOKIE, path="/admin", httponly=True, samesite="Strict")
    return answer


def _client() -> str:
    forwarded = request.headers.get("X-Forwarded-For", "")
    return client_address(request.remote_addr or "", forwarded, context().settings.admin.trusted_proxies)


def _begin(token: Token | None = None) -> Response:
    session = context().sessions.begin(request.form.get("name", ""), token)
    with context().ledger() as connection:
        audit_log.note(connection, session.who, "sign-in", "dashboard", {"session": session.id[:6]})
    answer = make_response(redirect(_inside(request.args.get("next", "")), 303))
    _set(answer, COOKIE, context().sessions.cookie(session), SESSION_TTL)
    answer.delete_cookie(_FORM_COOKIE, path=_PATH, httponly=True, samesite="Strict")
    return answer


def _take_link(link: str) -> bool:
    number = context().sessions.link_id(link)
    if number is None:
        return False
    with context().ledger() as connection:
        return dashboard_sessions.use_link(connection, number)


def _form(trouble: str, status: int = 200) -> Response:
    mine = request.cookies.get(_FORM_COOKIE) or secrets.token_urlsafe(16)
    page = render_template(
        "admin/sign_in.html", form=mine, trouble=trouble, next=request.args.get("next", "")
    )
    answer = make_response(page, status)
    _set(answer, _FORM_COOKIE, mine, timedelta(hours=1), path=_PATH)
    return answer


def _set(answer: Response, name: str, value: str, lasts: timedelta, path: str = "/admin") -> None:
    # A client that lies about its scheme only keeps its own cookie from itself.
    is_secure = request.is_secure or request.headers.get("X-Forwarded-Proto") == "https"
    answer.set_cookie(
        name, value, max_age=lasts, path=path, secure=is_secure, httponly=True, samesite="Strict"
    )


def _inside(path: str) -> str:
    """Return a page of ours to go on to; never another site, however it is spelled."""
    try:
        parts = urlsplit(path)
    except ValueError:  # half of an IPv6 address
        return "/admin/"
    is_ours = not parts.scheme and not parts.netloc and path.startswith("/admin/") and path.isprintable()
    return path if is_ours and "\\" not in path else "/admin/"
