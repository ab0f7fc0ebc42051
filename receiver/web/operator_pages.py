"""`/livez`, `/readyz` and `/metrics`: strangers may ask, and an answer must cost next to nothing."""

import threading
from collections.abc import Callable, Mapping
from datetime import timedelta
from time import monotonic
from typing import Any

from hookonce.providers import Reason
from hookonce.receiver.logs import limited
from hookonce.receiver.processes.waits import Waits
from hookonce.receiver.web.request import Request
from hookonce.receiver.web.response import Response, problem

log = limited(__name__)

LASTS = 1.0
"""Seconds for which an answer is given to all who ask."""
PATIENCE = timedelta(seconds=30)
"""For an answer that is being made; what makes it has timeouts of its own."""
METHODS = ("GET", "HEAD")


class Shared:
    """Makes one answer at a time, and gives it to all who ask meanwhile and in the second after."""

    def __init__(self, make: Callable[[], Response]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._until = 0.0
        self._made: Response | None = None
        self._asking: list[tuple[Waits, Any]] | None = None  # who waits for what is being made

    async def __call__(self, waits: Waits) -> Response:
        """Return an answer that is at most a second old, or was being made when it was asked for."""
        with self._lock:
            if self._made is not None and monotonic() < self._until:
                return self._made
            bell = None
            if self._asking is not None:
                bell = waits.bell()
                self._asking.append((waits, bell))
            else:
                self._asking = []
        if bell is not None:
            await waits.rung(bell, PATIENCE)
        else:
            await self._remake(waits)
        return self._made or problem(500, "internal_error", close=True)

    async def _remake(self, waits: Waits) -> None:
        made = None
        try:
            made = await waits.ask(self._make)
        finally:
            with self._lock:
                self._made = made
                self._until = monotonic() + LASTS
                asking, self._asking = self._asking or [], None
            for theirs, bell in asking:
                theirs.ring([bell])


class OperatorPages:
    """Answers by path. `pages` are answers, or make one."""

    def __init__(self, pages: Mapping[str, Response | Shared]) -> None:
        self._pages = pages

    async def answer(self, request: Request, waits: Waits) -> Response:
        """Answer a request. Raises nothing."""
        if request.method not in METHODS:
            return problem(405, Reason.BAD_METHOD, allow=", ".join(METHODS), close=True)
        page = self._pages[request.path]
        if isinstance(page, Response):
            return page
        try:
            return await page(waits)
        except Exception as error:
            log.exception("a page failed: %s", type(error).__name__)
            return problem(500, "internal_error", close=True)
