"""Whether what is checked out can be published as the version that pyproject.toml names. `make release-check`.

Everything is looked at, then all that is wrong is told; the packages are built and tried only if nothing is.
"""

import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
SECTION = re.compile(
    r"^## \[(?P<name>[^\]]+)\](?: - (?P<day>\S+))?\n(?P<text>.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL
)
DAY = re.compile(r"\d{4}-\d\d-\d\d")
VERSION = re.compile(r"\d+\.\d+\.\d+")
LAST_RUN = re.compile(
    r"^\*A test last ran these commands on \S+ with hookonce (?P<version>\S+) and ", re.MULTILINE
)


def main() -> int:
    """Return 0 if it can."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    mistakes = [*wrong_with_changelog(version), *wrong_with_pages(version), *wrong_with_checkout(version)]
    for mistake in mistakes:
        print(f"not to be released: {mistake}", file=sys.stderr)
    if mistakes:
        return 1
    with tempfile.TemporaryDirectory() as directory:
        run("-m", "hatchling", "build", "-d", directory)
        run(".ci/try_package.py", *map(str, Path(directory).iterdir()))
    print(f"{version} can be released")
    return 0


def wrong_with_changelog(version: str) -> list[str]:
    """Return what keeps CHANGELOG.md from being that of this version."""
    newest = SECTION.search((ROOT / "CHANGELOG.md").read_text())
    mistakes = []
    if not VERSION.fullmatch(version):
        mistakes.append(f"{version!r} is no version; expected three numbers, as in 1.2.0")
    if newest is None or newest["name"] != version:
        mistakes.append(f"CHANGELOG.md does not begin with {version}; expected `## [{version}] - YYYY-MM-DD`")
    elif not DAY.fullmatch(newest["day"] or ""):
        mistakes.append(
            f"CHANGELOG.md has no day for {version}; expected `## [{version}] - YYYY-MM-DD`, the day of the release"
        )
    elif "\n- " not in newest["text"]:
        mistakes.append(f"CHANGELOG.md says nothing about {version}")
    return mistakes


def wrong_with_pages(version: str) -> list[str]:
    """Return which pages of docs/ have commands that were last run with another version."""
    old = [
        page.relative_to(ROOT).as_posix()
        for page in sorted((ROOT / "docs").rglob("*.md"))
        if any(each["version"] != version for each in LAST_RUN.finditer(page.read_text()))
    ]
    return (
        [f"commands were not run with {version}: {', '.join(old)}; `make test-all`, then `make docs`"]
        if old
        else []
    )


def wrong_with_checkout(version: str) -> list[str]:
    """Return what keeps the checkout from being what the tag says."""
    mistakes = []
    if changed := git("status", "--porcelain"):
        mistakes.append(f"{len(changed)} files are changed or unknown to git; commit or remove them")
    if f"v{version}" not in git("tag", "--points-at", "HEAD"):
        mistakes.append(f"this commit has no tag v{version}; `git tag v{version}`")
    return mistakes


def run(*words: str) -> None:
    """Run Python. Raises: subprocess.CalledProcessError."""
    subprocess.run([sys.executable, *words], cwd=ROOT, check=True)


def git(*words: str) -> list[str]:
    """Return the lines that git prints."""
    return subprocess.run(
        ["git", *words], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.splitlines()


if __name__ == "__main__":
    sys.exit(main())
