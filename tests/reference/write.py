"""Writes docs/reference/ from the code: `make docs`."""

import tempfile
from pathlib import Path

from reference import commands, configuration, figures, operations, words

from receiver import embedded, migrate

FOLDER = Path(__file__).parents[2] / "docs" / "reference"
PAGES = {
    "api.md": operations.page,
    "cli.md": commands.page,
    "configuration.md": configuration.page,
    "environment.md": words.environment,
    "exits.md": words.exits,
    "statuses.md": words.statuses,
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
            (FOLDER / METRICS).write_text(figures.page(servers.database_url, servers.redis_url))


if __name__ == "__main__":
    main()
