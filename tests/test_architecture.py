import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("receiver", "providers", "jobs")
MODULES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))

# Who may import whom, first match counts: (importing module, what it may import of ours).
RULES = (
    ("providers.kit", ("providers",)),
    ("providers", ("providers",)),
    ("jobs", ("jobs", "receiver", "providers")),
    ("receiver", ("receiver", "providers")),
)
ALLOWED_IN_PROVIDERS = {"cryptography", "providers", *sys.stdlib_module_names}
FORBIDDEN_IN_PROVIDERS = {
    "socket",
    "requests",
    "urllib.request",
    "http.client",
    "subprocess",
    "random",
    "secrets",
}
CLOCK_AND_WORLD = {"os", "time", "pathlib", "tempfile", "threading", "shutil"}
READS_FILES = (
    "providers.kit.registry",
    "providers.kit.places",
    "providers.kit.conformance",
)  # finding, and testing
LAYERS = (
    "receiver.app",
    "receiver.hooks",
    "receiver.intake",
    "receiver.batch",
    "receiver.ledger",
    "receiver.database",
)


def name_of(path):
    dotted = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    return dotted.removesuffix(".__init__")


NAMES = {name_of(path) for path in MODULES}


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = ("." * node.level) + (node.module or "")
            inner = [f"{module}.{alias.name}" for alias in node.names if f"{module}.{alias.name}" in NAMES]
            yield from ((name, node) for name in inner or [module])


def is_under(name, package):
    return name == package or name.startswith(package + ".")


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_module_imports_only_what_its_layer_may(path):
    name = name_of(path)
    allowed = next(targets for package, targets in RULES if is_under(name, package))

    for imported, _ in imports(path):
        ours = any(is_under(imported, package) for package in PACKAGES)
        assert not ours or any(is_under(imported, package) for package in allowed), (
            f"{name} imports {imported}"
        )
        assert not imported.startswith("."), f"{name} uses a relative import"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_module_imports_nothing_inside_functions(path):
    for function in ast.walk(ast.parse(path.read_text())):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            late = [node for node in ast.walk(function) if isinstance(node, ast.Import | ast.ImportFrom)]
            assert not late, f"{name_of(path)}.{function.name} imports late"


@pytest.mark.parametrize("path", [p for p in MODULES if is_under(name_of(p), "providers")], ids=name_of)
def test_provider_is_pure(path):
    for imported, _ in imports(path):
        assert imported.split(".")[0] in ALLOWED_IN_PROVIDERS, imported
        assert imported not in FORBIDDEN_IN_PROVIDERS, imported
        assert imported not in CLOCK_AND_WORLD or any(
            is_under(name_of(path), each) for each in READS_FILES
        ), imported


def test_modules_have_no_cycles():
    ours = {name_of(path): path for path in MODULES}
    graph = {name: {i for i, _ in imports(path) if i in ours and i != name} for name, path in ours.items()}
    done, path_so_far = set(), []

    def visit(name):
        assert name not in path_so_far, " -> ".join([*path_so_far, name])
        if name in done:
            return
        path_so_far.append(name)
        for target in graph[name]:
            visit(target)
        path_so_far.pop()
        done.add(name)

    for name in graph:
        visit(name)


@pytest.mark.parametrize(("lower", "upper"), [(b, a) for n, a in enumerate(LAYERS) for b in LAYERS[n + 1 :]])
def test_lower_layer_does_not_import_an_upper_one(lower, upper):
    for path in MODULES:
        if is_under(name_of(path), lower):
            assert not [i for i, _ in imports(path) if is_under(i, upper)]


def test_nothing_imports_the_command_line_but_itself():
    outside = [path for path in MODULES if not is_under(name_of(path), "receiver.cli")]

    assert [p for p in outside if any(is_under(name, "receiver.cli") for name, _ in imports(p))] == []


@pytest.mark.parametrize("place", ["receiver.handoff:FUNCTION", "jobs.cli:worker", "jobs.cli:sweep"])
def test_dotted_name_resolves(place):
    code = (
        "import sys, importlib\n"
        "module, attribute = sys.argv[1].split(':')\n"
        "value = getattr(importlib.import_module(module), attribute)\n"
        "if isinstance(value, str):\n"
        "    module, _, attribute = value.rpartition('.')\n"
        "    value = getattr(importlib.import_module(module), attribute)\n"
        "assert callable(value)\n"
    )

    subprocess.run([sys.executable, "-c", code, place], cwd=ROOT, check=True)


def test_every_command_is_named_where_it_is():
    code = (
        "from receiver.cli import COMMANDS, LazyGroup\n"
        "import click\n"
        "group = LazyGroup()\n"
        "[group.get_command(click.Context(group), name) for name in COMMANDS]\n"
    )

    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_help_imports_nothing_heavy():
    code = (
        "import sys, receiver.cli as c\n"
        "try:\n"
        "    c.cli.main(['--help'], standalone_mode=False)\n"
        "finally:\n"
        "    heavy = {'flask', 'sqlalchemy', 'redis', 'rq', 'pydantic', 'rich', 'alembic', 'psycopg'}\n"
        "    assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )

    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def test_listing_events_imports_no_client_of_redis():
    code = (
        "import sys, receiver.cli.events\n"
        "heavy = {'sqlalchemy', 'redis', 'rq', 'opentelemetry', 'flask'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )

    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_importing_a_provider_does_not_import_another():
    code = (
        "import sys, providers.stripe\n"
        "others = [m for m in sys.modules if m.startswith('providers.') and m.count('.') == 1]\n"
        "assert others == [m for m in others if m in ('providers.stripe', 'providers.kit')], others\n"
    )

    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_no_adapter_has_more_than_80_lines():
    adapters = [path for path in (ROOT / "providers").glob("*.py") if path.stem != "__init__"]

    assert not [path.stem for path in adapters if len(path.read_text().splitlines()) > 80]


def test_architecture_page_names_every_module():
    _, picture, _ = (ROOT / "docs/architecture.md").read_text().split("```")
    words = set(re.findall(r"\w+", picture))
    alike = [ROOT / "providers", ROOT / "receiver/migrations", ROOT / "receiver/migrations/versions"]
    modules = [path for path in MODULES if path.parent not in alike and not path.stem.startswith("__")]

    assert not [name_of(path) for path in modules if path.stem not in words]
