"""What needs an extra names it in one line where its packages are not installed."""

import subprocess
import sys

import pytest

COMMAND = "import sys; sys.argv = ['hookonce', '{}']; from hookonce.receiver.cli import main; main()"


def without(library, code):
    """The last words of a program in an environment that lacks a library, and how many lines it has said."""
    program = f"import sys; sys.modules[{library!r}] = None; {code}"
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=60
    )
    assert done.returncode
    return done.stderr.splitlines()


@pytest.mark.parametrize("library", ["mcp", "mcp_types", "anyio", "uvicorn"])
def test_command_without_its_packages_says_what_to_install(library):
    assert without(library, COMMAND.format("mcp")) == [
        "hookonce: agents need the extra: pip install 'hookonce[mcp]'"
    ]


@pytest.mark.parametrize(
    ("library", "module", "extra"),
    [
        ("django", "hookonce.django", "django"),
        ("starlette", "hookonce.fastapi", "fastapi"),
        ("boto3", "hookonce.receiver.idempotency.dynamodb", "dynamodb"),
    ],
)
def test_import_without_its_packages_says_what_to_install(library, module, extra):
    assert without(library, f"import {module}")[-1].endswith(f"pip install 'hookonce[{extra}]'")
