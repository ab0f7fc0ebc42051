"""`hookonce deploy`: the files that run hookonce on a machine of one's own, as its pages explain them."""

from importlib.metadata import version
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import click

from hookonce.receiver.cli.options.examples import examples
from hookonce.receiver.cli.output.exits import Exit
from hookonce.receiver.cli.output.new_files import write_new
from hookonce.receiver.cli.output.printing import tell

_PLACES: dict[str, tuple[tuple[str, ...], str]] = {
    "alerts": (("alerts.yml",), "name it in Prometheus' rule_files"),
    "caddy": (("Caddyfile",), "put your name into it, and copy it to /etc/caddy/"),
    "compose": (
        ("compose/compose.yaml", "compose/Dockerfile"),
        "write the passwords that it names into .env, secrets into web.env, and run: docker compose up --build",
    ),
    "grafana": (("grafana.json",), "import it as a dashboard"),
    "kubernetes": (("kubernetes.yaml",), "put your image, names and secrets into it"),
    "nginx": (
        ("nginx.conf", "nginx-main.conf"),
        "put your name into nginx.conf, copy it to /etc/nginx/sites-available/hookonce, the other over nginx's own",
    ),
    "systemd": (
        (
            "systemd/hookonce-upgrade.service",
            "systemd/hookonce-serve.service",
            "systemd/hookonce-worker.service",
            "systemd/hookonce-desk.service",
        ),
        "copy them to /etc/systemd/system/, and run: systemctl daemon-reload",
    ),
}
"""Targets → (files, next steps)."""


@click.command(epilog=examples("hookonce deploy systemd", "hookonce deploy compose --dir shop"))
@click.argument("what", type=click.Choice(sorted(_PLACES)))
@click.option(
    "--dir",
    "folder",
    default=".",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory for the files; this one by default.",
)
def deploy(what: str, folder: Path) -> None:
    """Write the files that run hookonce with systemd, Docker Compose, nginx and others, as this version needs them.

    What is there already is left as it is; the command then fails.
    """
    names, then = _PLACES[what]
    folder.mkdir(parents=True, exist_ok=True)
    written = [write_new(folder / Path(name).name, _text(name)) for name in names]
    tell(f"\n{then}")
    if not all(written):
        raise click.exceptions.Exit(Exit.FAILURE)


def _text(name: str) -> str:
    place: Traversable = files("hookonce") / "deploy"
    for part in name.split("/"):
        place /= part
    return place.read_text(encoding="utf-8").replace("{version}", version("hookonce"))
