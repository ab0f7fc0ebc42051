"""What every framework tells of a request, and what is asked of an adapter."""

from dataclasses import dataclass
from typing import Any, Protocol

from hookonce.receiver.idempotency.policy import HEADER
from hookonce.receiver.idempotency.records import Result


class Headers(Protocol):
    """The headers of a request, whatever the case of their names."""

    def get(self, name: str, /) -> str | None:
        """Return a header."""
        ...


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as every framework tells it."""

    method: str
    path: str
    query: str
    headers: Headers
    body: bytes

    @property
    def key(self) -> str | None:
        """The header Idempotency-Key, as it was sent."""
        return self.headers.get(HEADER)


class Framework(Protocol):
    """What an adapter does."""

    def asked(self, request: Any, /) -> Asked:  # noqa: ANN401  the framework's
        """Read a request."""
        ...

    def read(self, answer: Any, /) -> tuple[Any, Result]:  # noqa: ANN401  the framework's
        """Return the response that a view's answer is, and what there is to store of it."""
        ...

    def response(self, result: Result, /) -> Any:  # noqa: ANN401  the framework's
        """Make a response."""
        ...
