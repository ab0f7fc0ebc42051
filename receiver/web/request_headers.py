"""Headers of a request that several places read, and the answer to a body that can't be read."""

import re

from hookonce.providers import Reason

BODY_STATUS = {Reason.TOO_LARGE: 413, Reason.UNSUPPORTED_ENCODING: 415, Reason.TOO_SLOW: 408}
"""The status for a body that `receiver.web.body` refuses; 400 for other reasons."""
_BEARER = re.compile(r"bearer +([A-Za-z0-9._~+/-]+=*)", re.IGNORECASE)


def bearer_token(authorization: str) -> str | None:
    """Return the token that the header Authorization holds (RFC 6750); None where it holds none."""
    found = _BEARER.fullmatch(authorization.strip())
    return found[1] if found else None
