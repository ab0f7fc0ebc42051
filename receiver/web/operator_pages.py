"""`/livez`, `/readyz` and `/metrics`, as plain WSGI: strangers may ask, and an answer must cost next to nothing."""

import threading
from collections.abc import Callable, Iterable, Mapping
from time import monotonic
from typing import Any, Generic, TypeVar

from hookonce.providers import Reason
from hookonce.receiver.logs import limited
from hookonce.receiver.web.response import Response, StartResponse, problem

log = limited(__name__)

LASTS = 1.0
"""Seconds for which an answer is given to all who ask."""
METHODS = ("GET", "HEAD")

Made = TypeVar("Made")


class Shared(Generic[Made]):
    """Makes one answer at a time, and gives it to all who ask meanwhile and in the second after."""

    def __init__(self, make: Callable[[], Made]) -> None:
        self._make = make
        self._turn = threading.Lock()
        self._until = 0.0
        self._made: Made

    def __call__(self) -> Made:
        """Return an answer that is at most a second old, or was being made when it was asked for."""
        asked = monotonic()
        if asked >= self._until:
            with self._turn:
                if asked >= self._until:
                    self._made = self._make()
                    self._until = monotonic() + LASTS
        return self._made


class OperatorPages:
    """Answers by path; `pages` are functions that make an answer, and another application has all other paths."""

    def __init__(
        self,
        pages: Mapping[str, Callable[[], Response]],
        otherwise: Callable[[dict[str, Any], Any], Iterable[bytes]],
    ) -> None:
        self._pages = pages
        self._otherwise = otherwise

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        """Answer a request (PEP 3333)."""
        if environ["PATH_INFO"] not in self._pages:
            return self._otherwise(environ, start_response)
        method = environ["REQUEST_METHOD"]
        if method not in METHODS:
            answer = problem(405, Reason.BAD_METHOD, allow=", ".join(METHODS), close=True)
        else:
            answer = self._make(environ["PATH_INFO"])
        return answer.send(method, start_response)

    def _make(self, path: str) -> Response:
        try:
            return self._pages[path]()
        except Exception as error:
            log.exception("a page failed: %s", type(error).__name__)
            return problem(500, "internal_error", close=True)
