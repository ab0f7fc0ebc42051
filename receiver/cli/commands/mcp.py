"""`hookonce mcp`: the inbox for agents, over the admin API."""

import os

import click

_DEFAULT_URL = "http://127.0.0.1:8000"


class _Address(click.ParamType):  # type: ignore[type-arg]  # older versions of click take no argument
    name = "host:port"

    def convert(
        self, value: str | tuple[str, int], param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        if isinstance(value, tuple):
            return value
        host, _, port = value.rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) <= 65_535:  # noqa: PLR2004  ports
            self.fail(f"expected a host and a port, as 127.0.0.1:8765, not {value!r}", param, ctx)
        return host.strip("[]"), int(port)


@click.command()
@click.option("--url", help=f"Address of the receiver; default $HOOKONCE_API_URL, or {_DEFAULT_URL}.")
@click.option(
    "--http", "address", type=_Address(), help="Serve HTTP at this address and /mcp instead of stdio."
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
