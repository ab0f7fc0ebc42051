"""`hookonce mcp`: the inbox for agents, over the admin API."""

import os

import click

_DEFAULT_URL = "http://127.0.0.1:8000"


def _address(_ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[str, int] | None:
    """Read a host and a port; a usage error where they can't be read."""
    if value is None:
        return None
    host, _, port = value.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) <= 65_535:  # noqa: PLR2004  ports
        raise click.BadParameter(f"expected a host and a port, as 127.0.0.1:8765, not {value!r}", param=param)
    return host.strip("[]"), int(port)


@click.command()
@click.option("--url", help=f"Address of the receiver; default $HOOKONCE_API_URL, or {_DEFAULT_URL}.")
@click.option(
    "--http",
    "address",
    metavar="HOST:PORT",
    callback=_address,
    help="Serve HTTP at this address and /mcp instead of stdio.",
)
@click.option("--read-only", is_flag=True, help="Leave out the tools that change something.")
def mcp(url: str | None, address: tuple[str, int] | None, *, read_only: bool) -> None:
    """Let an agent look into the inbox, and act after a plan, by the Model Context Protocol.

    On stdio it uses the API token in $HOOKONCE_API_TOKEN. Over HTTP each caller sends a token of its own as a
    bearer token. A token's scopes hold: `read` is enough for all that only looks. Needs `hookonce[mcp]`.
    """
    try:
        from hookonce.receiver.api.mcp import server
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "hookonce":
            raise
        raise click.ClickException("agents need the extra: pip install 'hookonce[mcp]'") from None
    where = url or os.environ.get("HOOKONCE_API_URL") or _DEFAULT_URL
    token = os.environ.get("HOOKONCE_API_TOKEN", "")
    if not address and not token:
        raise click.ClickException(
            "HOOKONCE_API_TOKEN is not set; make a token with `hookonce tokens create agent --scope read`"
        )
    if address:
        server.serve_http(where, *address, read_only=read_only)
    else:
        server.serve_stdio(where, token, read_only=read_only)
