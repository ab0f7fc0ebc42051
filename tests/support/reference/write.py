"""Writes docs/reference/ from the code: `make docs`."""

import tempfile
from pathlib import Path

from hookonce.receiver.dev import embedded
from hookonce.receiver.ledger.database import migrate
from tests.support.reference import admin_api, command_line, configuration, metrics, vocabulary

FOLDER = Path(__file__).parents[3] / "docs" / "reference"
PAGES = {
    "api.md": admin_api.page,
    "cli.md": command_line.page,
    "configuration.md": configuration.page,
    "environment.md": vocabulary.environment,
    "exits.md": vocabulary.exits,
    "glossary.md": vocabulary.glossary,
}
METRICS = "metrics.md"


def main():
    FOLDER.mkdir(exist_ok=True)
    for name, page in PAGES.items():
        (FOLDER / name).write_text(page())
    with tempfile.TemporaryDirectory() as data:
        Path(data).chmod(0o711)  # PostgreSQL runs as another user if we are root
        with embedded.servers(Path(data), durable=False) as servers:
            migrate.upgrade(servers.database_url)
            (FOLDER / METRICS).write_text(metrics.page(servers.database_url, servers.redis_url))


if __name__ == "__main__":
    main()
