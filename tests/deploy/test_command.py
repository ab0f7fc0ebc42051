"""`hookonce deploy` writes what pages explain, for this version, and writes over nothing."""

from importlib.metadata import version
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from hookonce.receiver.cli import cli
from hookonce.receiver.cli.commands.deploy import deploy

ROOT = Path(__file__).parents[2]
KINDS = next(each for each in deploy.params if each.name == "what").type.choices


def run(*words):
    return CliRunner().invoke(cli, ["deploy", *words])


@pytest.mark.parametrize("kind", KINDS)
def test_deploy_writes_files_that_are_tried_elsewhere(tmp_path, kind):
    tried = {each.name: each for each in (ROOT / "deploy").rglob("*") if each.is_file()}

    ran = run(kind, "--dir", str(tmp_path / "new"))

    written = sorted((tmp_path / "new").iterdir())
    assert ran.exit_code == 0, ran.output
    assert written
    for each in written:
        expected = tried[each.name].read_text(encoding="utf-8")
        assert each.read_text(encoding="utf-8") == expected.replace("{version}", version("hookonce"))


def test_deploy_writes_over_nothing_and_fails(tmp_path):
    (tmp_path / "compose.yaml").write_text("mine")

    ran = run("compose", "--dir", str(tmp_path))

    assert ran.exit_code == 1
    assert (tmp_path / "compose.yaml").read_text() == "mine"
    assert (tmp_path / "Dockerfile").exists()


def test_deploy_builds_the_image_of_compose_from_the_package_of_this_version(tmp_path):
    run("compose", "--dir", str(tmp_path))

    services = yaml.safe_load((tmp_path / "compose.yaml").read_text())["services"]
    image = (tmp_path / "Dockerfile").read_text()
    assert services["web"]["build"] == "."
    assert f"pip install hookonce=={version('hookonce')}\n" in image


def test_deploy_covers_all_that_the_folder_has(tmp_path):
    for kind in KINDS:
        run(kind, "--dir", str(tmp_path))

    there = {each.name for each in (ROOT / "deploy").rglob("*") if each.is_file()}
    assert {each.name for each in tmp_path.iterdir()} == there
