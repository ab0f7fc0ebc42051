"""Imports the names of a package when they are first used: those that its `if TYPE_CHECKING` block imports.

    if TYPE_CHECKING:
        from hookonce.jobs.registration import on as on
    else:
        __getattr__ = late_names.getter(__name__)

Type checkers read the block as it stands. Here it is read as text, at the first use of a name that is not there yet.
"""

import sys
from collections.abc import Callable
from functools import cache
from typing import Any


def getter(package: str) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package; its `__all__` are the names of the block.

    Raises: AttributeError for a name that the block does not import.
    """

    def get(name: str) -> Any:  # noqa: ANN401  a module, a class or a function
        if name == "__all__":
            return list(_modules(package))
        if name.startswith("__") or name not in _modules(package):
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = getattr(__import__(_modules(package)[name], fromlist=[name]), name)
        setattr(sys.modules[package], name, found)
        return found

    return get


@cache
def _modules(package: str) -> dict[str, str]:
    """Return the module of each name that a package imports for type checkers alone."""
    import ast
    from pkgutil import get_data

    return {
        alias.name: node.module or ""
        for block in ast.parse(get_data(package, "__init__.py") or b"").body
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
