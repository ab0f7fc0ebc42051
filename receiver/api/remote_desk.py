"""The desk of another inbox: each action asked by its route of the API there, and its answer read as it is here."""

from collections.abc import Mapping
from typing import Any, TypeVar
from urllib.parse import quote

from pydantic import ValidationError

from hookonce.receiver.api.routes import BY_NAME, Operation
from hookonce.receiver.desk import refusals
from hookonce.receiver.desk.models import RequestModel
from hookonce.receiver.desk.registry import Action, Answer, Octets
from hookonce.receiver.ledger.withheld import AS_SHOWN
from hookonce.receiver.remote.client import Client
from hookonce.receiver.remote.errors import Refused, RemoteError

A = TypeVar("A", bound=Answer)
_KINDS: Mapping[int, type[refusals.Refused]] = {
    401: refusals.Unauthorized,
    403: refusals.Forbidden,
    404: refusals.NotFound,
    409: refusals.Conflict,
    422: refusals.Invalid,
}
_BY_CODE = {each.usual_code: each for each in (refusals.Ambiguous, refusals.Contradictory)}


class RemoteDesk:
    """Asks as `receiver.desk.registry.Asks` says, under the token of a profile.

    What is posted under the same `key` is done once; without one, each time it is asked.
    """

    def __init__(self, client: Client, key: str = "") -> None:
        self._client = client
        self._key = key

    def ask(self, action: Action[A], /, **models: RequestModel) -> A:
        """Return the answer. Raises: `receiver.desk.refusals.Refused` as here, and `RemoteError`."""
        operation = BY_NAME[action.name]
        try:
            answer: A = self._answer(operation, models)
        except Refused as error:
            raise _as_here(error) from None
        except ValidationError:
            raise RemoteError(
                f"hookonce {self._client.version() or 'of another version'} answers at {self._client.url}, and tells "
                f"of {action.name} in another way; use that version here, too"
            ) from None
        return answer

    def _answer(self, operation: Operation, models: dict[str, RequestModel]) -> Any:  # noqa: ANN401  the action's
        path = _path(operation, models.get("which"))
        asked = models["asked"].model_dump(mode="json", exclude_none=True) if "asked" in models else None
        kind = operation.action.answer
        if kind is not None and issubclass(kind, Octets):
            return Octets(path.strip("/").replace("/", "-"), self._client.download(path))
        if operation.method == "GET":
            found: dict[str, Any] | None = self._client.get(path, **(asked or {}))
        elif operation.method == "POST":
            found = self._client.post(path, asked, key=self._key)
        else:
            found = self._client.request(operation.method, path, asked)
        return None if kind is None else kind.model_validate(found, context=AS_SHOWN)


def _path(operation: Operation, which: RequestModel | None) -> str:
    named = {} if which is None else which.model_dump(mode="json")
    # However these are quoted, they are resolved.
    if steps := [each for each in named.values() if each in {".", ".."}]:
        raise refusals.Invalid(
            f"{steps[0]!r} can't be asked of another inbox by this name; give the ledger id"
        )
    return operation.path.format_map({name: quote(str(each), safe="") for name, each in named.items()})


def _as_here(error: Refused) -> Exception:
    """Return the refusal that the same question gets on the machine itself; or the error, if there is no such one."""
    kind = _BY_CODE.get(error.code) or _KINDS.get(error.status)
    return kind(error.said, code=error.code) if error.said and kind else error
