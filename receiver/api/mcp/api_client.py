"""A request of the admin API, as an agent's tool makes it."""

import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, urlsplit

import requests
from mcp.server.mcpserver.exceptions import ToolError

TIMEOUT: Final = (5, 60)
"""Seconds to connect, and to wait for bytes."""
LONGEST_ANSWER: Final = 8 * 1024 * 1024
LONGEST_BODY: Final = 64 * 1024
"""Bytes of an event's body that are fetched."""


class ApiClient:
    """The API at one address, with one token."""

    def __init__(self, url: str, token: str) -> None:
        """`url` is the receiver's, without a path, or with the one it is mounted at. Raises: `ValueError`."""
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
            raise ValueError(f"expected where a receiver answers, as http://127.0.0.1:8000, not {url!r}")
        self._prefix = url.rstrip("/") + "/api/v1"
        self._authorization = f"Bearer {token}"

    def get(self, path: str, **query: object) -> Any:  # noqa: ANN401  JSON
        """Return what the API shows; what is None is not asked. Raises: `ToolError`."""
        given = {name: value for name, value in query.items() if value is not None}
        return json.loads(self._send("GET", path, params=given, most=LONGEST_ANSWER))

    def body(self, event: str) -> tuple[bytes, bool]:
        """Return the first bytes of an event's body, and whether that is all. Raises: `ToolError`."""
        found = self._send("GET", f"/events/{quote(event, safe='')}/body", most=LONGEST_BODY, may_be_cut=True)
        return found[:LONGEST_BODY], len(found) <= LONGEST_BODY

    def post(self, path: str, body: Mapping[str, object], key: str | None = None) -> Any:  # noqa: ANN401  JSON
        """Have the API do something, once per `key`. Raises: `ToolError`."""
        headers = {"Idempotency-Key": key} if key else {}
        return json.loads(self._send("POST", path, json=body, headers=headers, most=LONGEST_ANSWER))

    def _authorized(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = self._authorization
        return request

    def _send(
        self,
        method: str,
        path: str,
        *,
        most: int,
        may_be_cut: bool = False,
        headers: Mapping[str, str] | None = None,
        **options: Any,  # noqa: ANN401  those of requests
    ) -> bytes:
        sent = {"Accept-Encoding": "identity", **(headers or {})}
        try:
            with requests.request(
                method,
                self._prefix + path,
                headers=sent,
                auth=self._authorized,  # as a header alone, it would give way to ~/.netrc
                timeout=TIMEOUT,
                allow_redirects=False,
                stream=True,
                **options,
            ) as answer:
                content = _read(answer, most + 1)
        except requests.RequestException as error:
            raise ToolError(
                f"the API does not answer ({type(error).__name__}); is the receiver up, and the address right?"
            ) from None
        if answer.status_code == requests.codes.accepted:
            raise ToolError("the same request is under way; ask again in a few seconds")
        if not answer.ok or answer.is_redirect:
            raise ToolError(_refusal(answer.status_code, content))
        if len(content) > most and not may_be_cut:
            raise ToolError("the answer is too long; ask for fewer rows")
        return content


def _read(answer: requests.Response, most: int) -> bytes:
    content = bytearray()
    for piece in answer.iter_content(65_536):
        content += piece
        if len(content) >= most:
            break
    return bytes(content)


def _refusal(status: int, content: bytes) -> str:
    """Return what problem details say of a refusal."""
    try:
        problem = json.loads(content)
        said = [str(problem["detail"])]
        said += [
            f"{error.get('pointer') or error.get('parameter')}: {error['detail']}"
            for error in problem.get("errors", ())
        ]
        return f"{status}: " + "; ".join(said)
    except (ValueError, KeyError, TypeError, AttributeError):
        return f"{status}: whatever answers there is not hookonce's API"
