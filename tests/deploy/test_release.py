import importlib.util
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from hatchling.metadata.core import ProjectMetadata
from hatchling.plugin.manager import PluginManager

ROOT = Path(__file__).parents[2]
CHANGELOG = """# Changelog

## [1.2.0] - 2026-01-31

### Fixed

- Something.

## [1.1.0] - 2025-12-31

### Added

- Another thing.
"""
PAGE = "*A test last ran these commands on 2026-01-31 with hookonce {} and Python 3.11.*\n"


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A clone that can be released as 1.2.0, and the module that says so."""
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.2.0"\n')
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "page.md").write_text(PAGE.format("1.2.0"))
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "release"], ["tag", "v1.2.0"]):
        subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@example.com", *words], cwd=tmp_path, check=True
        )
    spec = importlib.util.spec_from_file_location("release_check", ROOT / ".ci" / "release_check.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    module.tried = []
    monkeypatch.setattr(module, "run", lambda *words: module.tried.append(words[0]))
    return tmp_path, module


def test_release_is_built_and_tried(checkout):
    _, module = checkout

    assert module.main() == 0
    assert module.tried == ["-m", ".ci/try_package.py"]


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("CHANGELOG.md", CHANGELOG.replace("1.2.0", "1.3.0"), "does not begin with 1.2.0"),
        (
            "CHANGELOG.md",
            CHANGELOG.replace("# Changelog", "## [1.3.0] - unreleased"),
            "does not begin with 1.2.0",
        ),
        ("CHANGELOG.md", CHANGELOG.replace("2026-01-31", "unreleased"), "has no day for 1.2.0"),
        ("CHANGELOG.md", CHANGELOG.replace(" - 2026-01-31", ""), "has no day for 1.2.0"),
        ("CHANGELOG.md", CHANGELOG.replace("- Something.", ""), "says nothing about 1.2.0"),
        ("CHANGELOG.md", "# Changelog\n", "does not begin with 1.2.0"),
        ("pyproject.toml", '[project]\nversion = "1.2"\n', "no version; expected three numbers"),
        ("pyproject.toml", '[project]\nversion = "1.3.0"\n', "no tag v1.3.0"),
        (
            "docs/page.md",
            PAGE.format("1.1.9"),
            "commands were not run with 1.2.0: docs/page.md; `make test-all`",
        ),
        ("new", "", "1 files are changed or unknown"),
    ],
)
def test_release_is_refused_with_the_reason(checkout, capsys, file, text, said):
    place, module = checkout
    (place / file).write_text(text)

    assert module.main() == 1
    assert said in capsys.readouterr().err
    assert module.tried == []


def test_version_stands_in_one_place():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout

    naming = {
        name
        for name in files.splitlines()
        if name.endswith((".py", ".toml", ".yaml", ".yml")) or "/" not in name
        if (ROOT / name).is_file() and f'"{version}"' in (ROOT / name).read_text(errors="replace")
    }

    assert naming == {"pyproject.toml"}


def test_page_of_the_package_has_no_link_that_leads_nowhere():
    description = ProjectMetadata(str(ROOT), PluginManager()).core.readme

    assert "](docs/index.md)" in (ROOT / "README.md").read_text()
    assert "\nTutorial · the whole thing in sixty lines · all documents · Django" in description
    assert [link for link in description.split("](")[1:] if not link.startswith(("https:", "mailto:"))] == []


def test_changelog_begins_with_the_version_that_comes_next_and_is_short():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    changelog = (ROOT / "CHANGELOG.md").read_text()

    sections = re.findall(
        r"^## \[(\S+)\] - (?:unreleased|\d{4}-\d\d-\d\d)\n(.*?)(?=^## |\Z)",
        changelog,
        re.MULTILINE | re.DOTALL,
    )

    assert sections[0][0] == version
    assert len(sections) == changelog.count("\n## ")
    assert [name for name, text in sections if len(text.splitlines()) > 80] == []
