"""`[admin]`: the dashboard, which is off unless there is a token to sign in with."""

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field

from receiver.references import resolve

VARIABLE = "HOOKONCE_ADMIN_TOKEN"
SHORTEST = 16
"""Characters of a token: few enough to type once a day, too many to guess through a throttle."""


class AdminTable(BaseModel):
    """What may stand in `[admin]`."""

    model_config = ConfigDict(extra="forbid")

    token: str | None = Field(
        default=None, description="reference to what signs in to the dashboard; HOOKONCE_ADMIN_TOKEN wins"
    )


def admin_token(
    table: AdminTable, environ: Mapping[str, str], mistakes: list[str], *, need_secrets: bool
) -> str:
    """Give the token, '' where the dashboard is off; the variable wins over the file."""
    try:
        token = environ.get(VARIABLE, "").strip() or (resolve(table.token, environ) if table.token else "")
    except ValueError as error:
        if need_secrets:
            mistakes.append(f"[admin] token: {error}")
        return ""
    if token and len(token) < SHORTEST:
        mistakes.append(
            f"the admin token has {len(token)} characters; expected {SHORTEST} or more, "
            f"say of `openssl rand -hex 24`, in {VARIABLE} or where [admin] token points"
        )
    return token
