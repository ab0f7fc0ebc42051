"""Refusals of the API: problem details (RFC 9457), which here may say what is wrong."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import Field

from hookonce.receiver.desk.refusals import Conflict, Forbidden, Invalid, NotFound, Refused, Unavailable
from hookonce.receiver.ledger.rows import ResponseModel
from hookonce.receiver.web import problem_details

CODES = {
    400: "bad_body",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "bad_method",
    409: "conflict",
    413: "too_large",
    415: "unsupported_media_type",
    422: "invalid",
    429: problem_details.TOO_MANY,
    500: "internal_error",
    503: "ledger_unavailable",
}
"""The code of each status, unless a more exact one is given."""
BEARER = 'Bearer realm="hookonce"'


class Mistake(ResponseModel):
    """One thing that is wrong with a request: where, and what was expected."""

    detail: str
    pointer: str | None = Field(
        None, description="a JSON pointer into the body (RFC 6901), as a URI fragment"
    )
    parameter: str | None = Field(None, description="a parameter of the query, or a header")


class ProblemDetails(ResponseModel):
    """Problem details (RFC 9457); `code` is what a program should look at."""

    type: Literal["about:blank"]
    title: str
    status: int
    code: str
    detail: str | None = None
    errors: list[Mistake] | None = None


class Problem(Exception):  # noqa: N818  an answer
    """Ends a request with a refusal; `detail` says what failed, what was expected and what to do."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
        errors: Sequence[Mistake] = (),
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code or CODES[status]
        self.headers = dict(headers or {})
        self.errors = errors
        if status == 503:  # noqa: PLR2004  the one status that asks to come back
            self.headers.setdefault("Retry-After", problem_details.RETRY_AFTER)

    @property
    def body(self) -> bytes:
        """The problem details, as JSON."""
        more: dict[str, Any] = {"detail": str(self)}
        if self.errors:
            more["errors"] = [mistake.model_dump(exclude_none=True) for mistake in self.errors]
        return problem_details.document(self.status, self.code, **more)


_STATUSES: Mapping[type[Refused], int] = {
    NotFound: 404,
    Conflict: 409,
    Invalid: 422,
    Unavailable: 503,
    Forbidden: 403,
}


def of_refusal(refused: Refused) -> Problem:
    """Return what a refusal of the desk is answered with."""
    status = next(status for kind, status in _STATUSES.items() if isinstance(refused, kind))
    headers = {}
    if isinstance(refused, Forbidden):
        headers["WWW-Authenticate"] = f'{BEARER}, error="insufficient_scope", scope="{refused.scope}"'
    return Problem(status, str(refused), code=refused.code, headers=headers)


def unauthorized(detail: str, error: str = "") -> Problem:
    """Refuse for want of a good token (RFC 6750)."""
    challenge = f'{BEARER}, error="{error}"' if error else BEARER
    return Problem(401, detail, headers={"WWW-Authenticate": challenge})
