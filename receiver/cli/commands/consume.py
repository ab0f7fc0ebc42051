"""`hookonce consume` and `hookonce consumers`: deliveries that are taken from brokers."""

import click

from hookonce.receiver.cli.connections import configured
from hookonce.receiver.cli.output.printing import tell
from hookonce.receiver.cli.output.tables import listed
from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.config.settings import Settings, load_settings, require_servers
from hookonce.receiver.config.suggestions import no_source
from hookonce.receiver.desk.refusals import NotFound
from hookonce.receiver.intake.consumers import run
from hookonce.receiver.monitoring import health
from hookonce.receiver.source import Source


@click.command()
@click.argument("names", metavar="[SOURCE]...", nargs=-1)
def consume(names: tuple[str, ...]) -> None:
    """Take messages of brokers in until stopped: of all sources with `from`, or of these.

    A message is acknowledged once the ledger holds its events. Exit 78 if configuration or schema are not right.
    """
    settings = load_settings()
    require_servers(settings)
    known = consumed(settings)
    sources = {name: known[name] for name in names or known if name in known}
    if unknown := [name for name in names if name not in settings.sources]:
        raise NotFound(no_source(unknown[0], settings.sources))
    mistakes = [
        f"source '{name}' has no `from`, so nothing to consume" for name in names if name not in known
    ]
    mistakes += [
        f"source '{name}': its from is not set here" for name, each in sources.items() if not each.broker
    ]
    if mistakes or not sources:
        raise ConfigError(mistakes or ["no source has from; there is nothing to consume"])
    health.require_schema(settings.database_url)
    tell(
        f"hookonce: consuming {', '.join(f'{name} from {each.shown_url}' for name, each in sources.items())}"
    )
    run(settings, sources)


def consumed(settings: Settings) -> dict[str, Source]:
    """Return the sources whose deliveries are taken from brokers."""
    return {name: each for name, each in settings.sources.items() if each.broker is not None}


@click.group()
def consumers() -> None:
    """List the sources that are taken from brokers."""


@consumers.command("list")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line.")
def list_(*, as_json: bool) -> None:
    """List consumers: from where they take, and what proves a message. `hookonce doctor` looks at the brokers."""
    found = consumed(configured()).items()
    rows = [(name, each.provider.name, each.shown_url, each.authenticity) for name, each in found]
    empty = "no source has from; `hookonce docs how-to/consumers` says how to add one"
    listed(("source", "provider", "from", "authenticity"), rows, empty, as_json=as_json)
