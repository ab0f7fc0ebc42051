"""A copy of a checkout, in which the product can be changed and nothing else is.

What git knows or might add is copied, with an index of its own, for some tests ask git. The environment is the
checkout's, by links: only what names the checkout's path is written anew, the scripts and the `.pth` of the editable
installation. So whatever is started from the copy's `.venv/bin` imports the copy, with no variable to be lost.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

PACKAGES = Path("lib") / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
OURS = "tests/mutants/"
INSIDE = Path(__file__).parent / "inside"
_COMPILED = ("hookonce", "receiver", "jobs", "providers")


def files_of(tree: Path) -> list[str]:
    """Return the files of a checkout, those that are not committed too."""
    listed = _git(tree, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    return sorted({each for each in listed if each and os.path.lexists(tree / each)})


def key_of(tree: Path) -> str:
    """Return what tells the content of a checkout from any other; the mutants are no part of it."""
    digest = hashlib.sha256()
    for name in files_of(tree):
        path = tree / name
        if not name.startswith(OURS):
            content = bytes(path.readlink()) if path.is_symlink() else path.read_bytes()
            digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:16]


def copy_of(tree: Path, place: Path) -> Path:
    """Make a copy of a checkout at a place that is not there yet; return it."""
    subprocess.run(["git", "clone", "--quiet", "--shared", "--no-checkout", tree, place], check=True)
    _git(place, "read-tree", "HEAD")
    for name in files_of(tree):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(tree / name, place / name, follow_symlinks=False)
    _link_environment(tree, place)
    # What is compiled once is compiled for all copies of this copy.
    subprocess.run([place / ".venv/bin/python", "-m", "compileall", "-q", *_COMPILED], cwd=place, check=True)
    return place


def again(copy: Path, place: Path) -> Path:
    """Make a copy of a copy; return it."""
    subprocess.run(["cp", "--archive", copy, place], check=True)
    shutil.rmtree(place / ".venv")
    _link_environment(copy, place)
    return place


def _link_environment(tree: Path, place: Path) -> None:
    of_tree, of_place = tree / ".venv", place / ".venv"
    _link_all(of_tree, of_place, but=("bin", "lib", "lib64", "pyvenv.cfg", ".installed"))
    _link_all(of_tree / "bin", of_place / "bin")
    _link_all(of_tree / PACKAGES, of_place / PACKAGES, but=("__pycache__",))
    for each in INSIDE.glob("mutants_*.py"):
        (of_place / PACKAGES / each.name).unlink(missing_ok=True)
        shutil.copy2(each, of_place / PACKAGES)
    (of_place / "lib64").symlink_to("lib")
    written = [of_place / "pyvenv.cfg", *(of_place / PACKAGES).glob("*.pth"), *(of_place / "bin").iterdir()]
    for path in written:
        _write_for(path, of_tree / path.relative_to(of_place), tree, place)
    (of_place / ".installed").touch()


def _link_all(folder: Path, place: Path, but: tuple[str, ...] = ()) -> None:
    """Link what is in a folder into another; links stay what they are."""
    place.mkdir(parents=True)
    for each in folder.iterdir():
        if each.name not in but:
            (place / each.name).symlink_to(each.readlink() if each.is_symlink() else each)


def _write_for(path: Path, original: Path, tree: Path, place: Path) -> None:
    """Have a text that names the tree name the copy; anything else stays a link."""
    if original.is_symlink() or not original.is_file():
        return
    content = original.read_bytes()
    if path.suffix in {".cfg", ".pth"} or content.startswith(b"#!"):
        path.unlink(missing_ok=True)
        path.write_bytes(content.replace(os.fsencode(tree), os.fsencode(place)))
        path.chmod(original.stat().st_mode)


def _git(tree: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=tree, check=True, stdout=subprocess.PIPE, text=True).stdout
