"""Who may import whom, who owns which library, and that the map of the packages is true."""

import ast
import importlib
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

import click

from hookonce.receiver.cli import COMMANDS, LazyGroup
from tests.support.for_each import for_each

ROOT = Path(__file__).parent.parent
PACKAGES = ("receiver", "providers", "jobs")
FRAMEWORKS = ("flask", "fastapi.py", "django", "ledger.py", "testing")
"""What lies in hookonce/ itself, besides its `__init__.py`: named `hookonce.flask` here, unlike Flask."""
MODULES = sorted(
    [
        *(path for package in PACKAGES for path in (ROOT / package).rglob("*.py")),
        *(path for each in FRAMEWORKS for path in (ROOT / "hookonce").glob(f"{each}/**/*.py")),
        *(ROOT / "hookonce" / each for each in FRAMEWORKS if each.endswith(".py")),
    ]
)

R = "receiver."
# What each package may import of ours, besides itself; those of receiver/ without their `receiver.`.
MAY_IMPORT = {
    "providers": (),
    "receiver.failpoints": (),
    "receiver.logs": (),
    "receiver.encryption": (),
    "receiver.durations": (),
    "receiver.source": ("providers", "durations"),
    "receiver.processes": ("logs",),
    "receiver.config": ("providers", "durations", "encryption", "processes", "source"),
    "receiver.ledger": (
        "providers",
        "config",
        "durations",
        "encryption",
        "failpoints",
        "processes",
        "source",
    ),
    "receiver.redis": ("config", "durations", "processes", "source"),
    "receiver.idempotency": ("config", "encryption", "failpoints", "ledger", "redis"),
    "receiver.endpoints": ("config", "durations", "failpoints", "idempotency", "logs", "web"),
    "receiver.outbound": ("providers", "source"),
    "receiver.outbound.brokers": ("config",),
    "receiver.remote": (),
    "receiver.samples": ("providers",),
    "receiver.vocabulary": ("providers", "ledger"),
    "receiver.privacy": ("providers", "encryption", "ledger", "logs", "source"),
    "receiver.monitoring": ("providers", "config", "encryption", "ledger", "logs", "privacy", "redis"),
    "receiver.intake": (
        "providers",
        "config",
        "durations",
        "encryption",
        "failpoints",
        "ledger",
        "logs",
        "monitoring",
        "outbound",
        "outbound.brokers",
        "privacy",
        "processes",
        "redis",
        "samples",
        "source",
    ),
    "receiver.commands": (
        "providers",
        "config",
        "encryption",
        "endpoints",
        "failpoints",
        "idempotency",
        "intake",
        "ledger",
        "logs",
        "processes",
        "web",
    ),
    "receiver.web": (
        "providers",
        "config",
        "failpoints",
        "intake",
        "ledger",
        "logs",
        "outbound",
        "processes",
        "source",
    ),
    "receiver.desk": (
        "providers",
        "config",
        "durations",
        "encryption",
        "intake",
        "ledger",
        "monitoring",
        "privacy",
        "redis",
        "source",
        "vocabulary",
    ),
    "receiver.api": (
        "providers",
        "config",
        "desk",
        "endpoints",
        "idempotency",
        "intake",
        "ledger",
        "logs",
        "redis",
        "remote",
        "vocabulary",
        "web",
    ),
    "receiver.dashboard": (
        "providers",
        "config",
        "durations",
        "desk",
        "encryption",
        "intake",
        "ledger",
        "logs",
        "outbound",
        "redis",
        "samples",
        "source",
        "vocabulary",
        "web",
    ),
    "receiver.app": (
        "providers",
        "api",
        "commands",
        "config",
        "dashboard",
        "intake",
        "logs",
        "monitoring",
        "web",
    ),
    "receiver.api.mcp": ("api", "desk", "ledger", "remote"),
    "receiver.dev": ("providers", "config", "ledger", "processes", "samples", "source"),
    "receiver.cli": (
        "providers",
        "api",
        "config",
        "durations",
        "desk",
        "dashboard",
        "dev",
        "encryption",
        "intake",
        "ledger",
        "api.mcp",
        "monitoring",
        "outbound",
        "outbound.brokers",
        "privacy",
        "processes",
        "redis",
        "remote",
        "samples",
        "source",
        "vocabulary",
    ),
    "jobs": (
        "providers",
        "config",
        "durations",
        "encryption",
        "failpoints",
        "idempotency",
        "intake",
        "ledger",
        "logs",
        "monitoring",
        "outbound",
        "outbound.brokers",
        "privacy",
        "processes",
        "redis",
        "source",
    ),
    "hookonce.django": ("jobs", "cli", "config", "ledger", "web"),
    "hookonce.fastapi": ("web",),
    "hookonce.ledger": ("ledger",),
    "hookonce.flask": ("jobs", "cli", "config", "ledger", "web"),
    "hookonce.testing": (
        "jobs",
        "providers",
        "config",
        "dev",
        "encryption",
        "failpoints",
        "intake",
        "ledger",
        "processes",
        "redis",
        "samples",
        "source",
        "web",
        "hookonce.django",
        "hookonce.flask",
    ),
}

# Which packages may import a library; every other is kept free of it.
LIBRARIES = {
    "aio_pika": ("receiver.outbound.brokers.rabbitmq",),
    "alembic": ("receiver.ledger.database",),
    "boto3": ("receiver.idempotency.dynamodb", "receiver.outbound.brokers.sqs"),
    "botocore": ("receiver.idempotency.dynamodb", "receiver.outbound.brokers.sqs"),
    "click": ("receiver.cli", "jobs.cli", "jobs.configured.cli", "hookonce.flask.cli"),
    "cryptography": ("providers", "receiver.encryption"),
    "dotenv": ("receiver.config.dotenv_file",),
    "django": (
        "hookonce.django",
        "hookonce.testing.django",
        "jobs.attempts.django_transaction",
        "receiver.endpoints.frameworks",
    ),
    "fastapi": ("receiver.endpoints.frameworks",),
    "flask": (
        "receiver.web.compression",
        "receiver.app",
        "receiver.api",
        "receiver.dashboard",
        "receiver.endpoints.frameworks",
        "hookonce.flask",
        "hookonce.testing.plugin",
    ),
    "uvloop": ("receiver.web.worker",),
    "gunicorn": ("receiver.web",),
    "httptools": ("receiver.web.http",),
    "jmespath": ("jobs.configured.forwards",),
    "jinja2": ("receiver.dashboard",),
    "mcp": ("receiver.api.mcp",),
    "nats": ("receiver.outbound.brokers.nats",),
    "opentelemetry": (
        "receiver.monitoring.otel",
        "receiver.intake.traced",
        "receiver.idempotency.traced",
        "jobs.attempts.traces",
    ),
    "prometheus_client": ("receiver.monitoring",),
    "pydantic": (
        "receiver.source",
        "receiver.config",
        "receiver.ledger",
        "receiver.desk",
        "receiver.api",
        "receiver.cli",
        "receiver.remote.pull",
        "jobs.configured.commands",
    ),
    "pygments": ("receiver.dashboard",),
    "redis": ("receiver.redis", "jobs.worker", "jobs.mirror", "hookonce.testing.servers"),
    "requests": (
        "receiver.outbound",
        "receiver.dev",
        "receiver.cli",
        "receiver.api.mcp",
        "receiver.remote",
        "jobs.alerts.delivery",
    ),
    "rq": ("receiver.redis", "jobs.worker", "jobs.mirror"),
    "starlette": ("hookonce.fastapi",),
    "sqlalchemy": ("receiver.ledger.database", "jobs", "hookonce.flask", "hookonce.testing"),
    "uvicorn": ("receiver.api.mcp",),
    "watchfiles": ("receiver.dev.file_watch",),
    "werkzeug": ("receiver.app", "receiver.api", "receiver.dashboard", "hookonce.testing.inbox"),
}

# Rooms that only some may enter: what stands on the left is imported by what stands on the right, and by itself.
BORDERS = {
    "receiver.ledger.queries": (
        "receiver.desk",
        "receiver.cli",
        "receiver.dashboard",
        "receiver.ledger.maintenance.erasure",
        "receiver.ledger.replay",
        "receiver.ledger.replay.transfer",
        "hookonce.django.admin",
        "hookonce.testing",
        "jobs.configured.cli",
    ),
    "receiver.cli": ("hookonce.django.management", "hookonce.flask.cli"),
    "receiver.app": (),
    # A capability of a handler's event is known where that is made, and nowhere else of an attempt.
    "jobs.capabilities.steps": ("jobs.attempts.handler_event",),
    "jobs.configured.origin": (
        "jobs.attempts.handler_event",
        "jobs.alerts.delivery",
        "jobs.configured",
    ),
    "providers.kit.conformance": ("receiver.cli.commands.new", "receiver.cli.commands.capture"),
}

ASK_THE_DESK = ("receiver.cli", "receiver.dashboard")
"""Pages and commands import the desk, and of the ledger nothing but `states`."""
KNOW_THE_LEDGER = {
    "receiver.cli.connections": "connects commands to it",
    "receiver.cli.doctor": "examines it, with or without tables",
    "receiver.cli.commands.db": "makes its tables and roles",
    "receiver.dashboard.blueprint": "connects pages to it",
    "receiver.dashboard.sign_in": "keeps their sessions",
}
"""Who may, and why."""
# Within these, an earlier room never imports a later one.
ORDERS = {
    "providers.kit": ("reading", "crypto", "signing", "events", "schemes", "registry", "conformance"),
    "jobs": (
        "event",
        "handlers",
        "attempts",
        "alerts",
        "slots",
        "drain",
        "worker",
        "maintenance",
        "children",
        "cli",
    ),
    "receiver.intake": ("group_commit", "verification", "pipeline", "reverification"),
}

LATE = {
    "receiver.cli": "a command starts sooner without what it may not need",
    "hookonce.testing.plugin": "pytest loads it in every run, and most need nothing of it",
    "receiver.endpoints.frameworks.detection": "frameworks that are not in use",
    "receiver.web.mounted": "the extra `otel`",
    "receiver.dev.file_watch": "the extra `embedded`",
    "receiver.ledger.database.migrate": "Alembic and SQLAlchemy, which a new ledger is made without in half the time",
    "receiver.ledger.database.roles": "SQLAlchemy, whose tables only a reader's rights are read from",
    "receiver.monitoring.tracing": "the extra `otel`",
    "receiver.idempotency.counted": "the extra `otel`",
    "receiver.outbound.brokers": "the extra of each kind",
    "jobs.configured.forwards": "the extra `jmespath`",
    "jobs.attempts.shared": "the extra `otel`",
    "jobs.attempts.calls": "the ORM and asyncio, which only handlers that ask for them need",
    "hookonce.django.apps": "Django takes its checks in once the applications are there",
    "hookonce.django.checks": "Django's backend, which imports the driver",
}
"""Where an import may stand inside a function, and why."""

NAMES_MODULES = {
    "providers.kit.registry.discovery": "the group of entry points is called so",
    "receiver.cli": "click's lazy group; the worker's commands are only named, for receiver/ never imports jobs/",
    "receiver.cli.commands.serve": "gunicorn loads the application and its settings",
    "receiver.dev.stack": "gunicorn's settings, and the module of the demo's handlers",
    "receiver.dev.demo": "the module of the demo's handlers",
    "receiver.redis.work_queue": "RQ jobs name their function",
    "receiver.web.gunicorn_conf": "gunicorn's settings name classes",
    "jobs.cli": "the program of a child process",
    "receiver.cli.doctor.handlers": "the program of a child process",
}
"""Where a string may name a module, and why; each is tried."""

MODULE_NAME = re.compile(r"^(?:python:)?(hookonce\.(?:receiver|providers|jobs)[\w.:]*)(?:\(\))?$")
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
READS_FILES = ("providers.kit.registry", "providers.kit.conformance", "providers.kit.http_file")
"""They find providers, or test them."""


def name_of(path):
    """`receiver.web.hooks`; everything is imported with `hookonce.` before it."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


PATHS = {name_of(path): path for path in MODULES}


class Facts(NamedTuple):
    """What a module's source says, read once for all tests.

    `imports`: names, ours without their `hookonce.`; `late`: functions that import; `names`: strings that name a module
    """

    doc: str
    imports: frozenset[str]
    late: tuple[str, ...]
    names: tuple[str, ...]


@cache
def facts():
    return {name: facts_of(name, ast.parse(path.read_text())) for name, path in PATHS.items()}


def facts_of(name, tree):
    found, late, named = set(), [], []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            found.update(imported_by(node))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            inner = (each for statement in node.body for each in ast.walk(statement))
            if any(isinstance(each, ast.Import | ast.ImportFrom) for each in inner):
                late.append(node.name)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            named += MODULE_NAME.findall(node.value)
    return Facts(ast.get_docstring(tree) or "", frozenset(found - {name}), tuple(late), tuple(named))


def imported_by(node):
    if isinstance(node, ast.Import):
        yield from (ours(alias.name) for alias in node.names)
        return
    module = ours(("." * node.level) + (node.module or ""))
    inner = [name for alias in node.names if (name := f"{module}.{alias.name}") in PATHS]
    yield from inner
    if len(inner) < len(node.names):
        yield module


def imports_of(name):
    return facts()[name].imports


def imports():
    """What each module imports."""
    return {name: found.imports for name, found in facts().items()}


def ours(name):
    package = name.removeprefix("hookonce.")
    return package if name != package and package.split(".")[0] in PACKAGES else name


def is_under(name, package):
    return name == package or name.startswith(package + ".")


def is_ours(name):
    return name.split(".")[0] in PACKAGES or name.startswith("hookonce.")


def package_of(name):
    return max((package for package in MAY_IMPORT if is_under(name, package)), key=len, default=name)


@for_each(PATHS)
def test_module_imports_only_what_its_package_may(name):
    package = package_of(name)
    if package == "receiver":  # its docstring
        assert not imports_of(name)
        return
    may = {each if each in MAY_IMPORT else R + each for each in MAY_IMPORT[package]}

    for imported in filter(is_ours, imports_of(name)):
        assert package_of(imported) in {package, *may}, f"{name} imports {imported}"


def test_nothing_is_imported_by_a_bare_or_a_relative_name():
    everywhere = [*MODULES, *(path for place in ("tests", "bench") for path in (ROOT / place).rglob("*.py"))]
    bare = re.compile(r"^\s*(?:from|import) +(?:receiver|providers|jobs)\b", re.MULTILINE)

    assert not [path for path in everywhere if bare.search(path.read_text())]
    assert not [name for name, found in imports().items() if any(each.startswith(".") for each in found)]


@for_each(LIBRARIES)
def test_library_is_imported_only_where_it_belongs(library):
    users = [name for name, found in imports().items() if any(is_under(each, library) for each in found)]

    assert users, f"nothing imports {library} any more; take its row out"
    assert not [name for name in users if not any(is_under(name, owner) for owner in LIBRARIES[library])]


@for_each(BORDERS)
def test_room_is_entered_only_by_those_who_may(room):
    users = [name for name, found in imports().items() if any(is_under(each, room) for each in found)]

    assert not [name for name in users if not any(is_under(name, each) for each in (room, *BORDERS[room]))]


@for_each(ORDERS)
def test_earlier_room_imports_no_later_one(package):
    order = ORDERS[package]
    for number, room in enumerate(order):
        for name in (name for name in PATHS if is_under(name, f"{package}.{room}")):
            for later in order[number + 1 :]:
                assert not [i for i in imports_of(name) if is_under(i, f"{package}.{later}")], name


def circle(graph):
    """The first circle in a graph, or None."""
    done, way = set(), []

    def visit(node):
        if node in way:
            return [*way[way.index(node) :], node]
        if node in done:
            return None
        way.append(node)
        found = next((each for target in sorted(graph.get(node, ())) if (each := visit(target))), None)
        way.pop()
        done.add(node)
        return found

    return next((found for node in sorted(graph) if (found := visit(node))), None)


def rooms(package):
    """Which room of a package imports which: its modules, and its folders as a whole."""

    def room(name):
        return name[len(package) + 1 :].split(".")[0]

    graph = {}
    for name, found in imports().items():
        if is_under(name, package) and name != package:
            inner = {room(each) for each in found if is_under(each, package) and each != package}
            graph.setdefault(room(name), set()).update(inner - {room(name)})
    return graph


def test_modules_have_no_circle():
    assert circle({name: {i for i in found if i in PATHS} for name, found in imports().items()}) is None


@for_each(["receiver", "receiver.ledger", "receiver.intake", "jobs", "receiver.cli"])
def test_rooms_of_a_package_have_no_circle(package):
    assert circle(rooms(package)) is None


def test_table_itself_has_no_circle():
    table = {
        package: {each if each in MAY_IMPORT else R + each for each in may}
        for package, may in MAY_IMPORT.items()
    }

    assert circle(table) is None


@for_each(PATHS)
def test_module_imports_inside_functions_only_where_it_serves(name):
    if any(is_under(name, each) for each in LATE):
        return
    late = facts()[name].late

    assert not late, f"{name}: {', '.join(late)} imports late"


@for_each(PATHS)
def test_strings_name_modules_only_where_nothing_else_will_do(name):
    found = facts()[name].names

    assert not found or name in NAMES_MODULES, f"{name} hides an import in {found}"


@for_each([name for name in NAMES_MODULES if name in PATHS])
def test_string_that_names_a_module_names_one_that_is_there(name):
    found = facts()[name].names

    assert found, f"{name} names nothing any more; take its row out"
    for text in found:
        module, _, attribute = text.partition(":")
        while module.removeprefix("hookonce.") not in PATHS:
            module, _, attribute = module.rpartition(".")
        assert not attribute or hasattr(importlib.import_module(module), attribute.partition(".")[0]), text


@for_each([name for name in PATHS if is_under(name, "providers")])
def test_provider_is_pure(name):
    for imported in imports_of(name):
        first = imported.split(".")[0]
        assert first in {"cryptography", "hookonce", "providers", *sys.stdlib_module_names}, imported
        assert imported not in FORBIDDEN_IN_PROVIDERS, imported
        assert imported not in CLOCK_AND_WORLD or any(is_under(name, each) for each in READS_FILES), imported


ENGINE = (
    "jobs.plan",
    "jobs.claimer",
    "jobs.attempts.attempt",
    "jobs.attempts.endings",
    "receiver.ledger.runs",
)
"""What decides on runs: no capability is threaded through it."""
BESIDE_THE_ENGINE = (
    "jobs.order",
    "jobs.capabilities.waits",
    "receiver.ledger.waits",
    "jobs.configured.forwards",
    "receiver.ledger.entities",
    "receiver.outbound.brokers",
    "receiver.redis.approximate",
)


@for_each([name for name in PATHS if name.startswith(ENGINE)])
def test_engine_knows_nothing_of_what_stands_around_the_call(name):
    assert not any(
        is_under(each.removeprefix("hookonce."), beside)
        for each in imports_of(name)
        for beside in BESIDE_THE_ENGINE
    )


ALIKE = ("providers", "receiver.ledger.database.migrations", "receiver.cli.commands")
"""Folders of like things: their listing is their map."""
FOLDERS = [
    name for name, path in PATHS.items() if path.name == "__init__.py" and not name.startswith(ALIKE[1:])
]


def inside(name):
    folder = PATHS[name].parent
    modules = {path.stem for path in folder.glob("*.py") if not path.stem.startswith("__")}
    return modules | {path.parent.name for path in folder.glob("*/__init__.py")}


@for_each([name for name in FOLDERS if name not in ALIKE])
def test_docstring_of_a_package_names_each_of_its_modules_once(name):
    said = re.findall(r"`(\w+)`", facts()[name].doc)

    assert sorted(each for each in said if each in inside(name)) == sorted(inside(name))


@for_each([name for name in FOLDERS if name not in ALIKE])
def test_folder_can_be_taken_in_at_a_glance(name):
    assert len(inside(name)) <= 26


def test_page_of_imports_names_what_every_package_may_import():
    page = (ROOT / "docs/reference/imports.md").read_text()
    rows = dict(re.findall(r"^\| `([\w.]+)` \| (.*) \|$", page, re.MULTILINE))

    assert {name: tuple(re.findall(r"`([\w.]+)`", may)) for name, may in rows.items()} == MAY_IMPORT


def test_architecture_page_names_every_package():
    page = (ROOT / "docs/explanation/architecture.md").read_text()

    for name in FOLDERS:
        if name.count(".") <= 2 and name != "receiver":
            assert f"{PATHS[name].parent.relative_to(ROOT).as_posix()}/" in page.replace("\n", " "), name


def test_every_command_is_named_where_it_is():
    group = LazyGroup()

    assert all(group.get_command(click.Context(group), name) for name in COMMANDS)


def test_help_imports_nothing_heavy():
    code = (
        "import sys, hookonce.receiver.cli as c\n"
        "try:\n"
        "    c.cli.main(['--help'], standalone_mode=False)\n"
        "finally:\n"
        "    heavy = {'flask', 'sqlalchemy', 'redis', 'rq', 'pydantic', 'rich', 'alembic', 'psycopg'}\n"
        "    assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )

    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def test_listing_events_imports_no_client_of_redis():
    code = (
        "import sys, hookonce.receiver.cli.commands.events\n"
        "heavy = {'sqlalchemy', 'redis', 'rq', 'opentelemetry', 'flask'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )

    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_importing_a_provider_does_not_import_another():
    code = (
        "import sys, hookonce.providers.stripe\n"
        "others = [m for m in sys.modules if m.startswith('hookonce.providers.') and m.count('.') == 2]\n"
        "assert set(others) <= {'hookonce.providers.stripe', 'hookonce.providers.kit'}, others\n"
    )

    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_pages_and_commands_ask_the_desk():
    known = {
        name
        for name, found in imports().items()
        for each in found
        if any(is_under(name, room) for room in ASK_THE_DESK)
        and is_under(each, "receiver.ledger")
        and each != "receiver.ledger.states"
        and not any(is_under(name, room) for room in KNOW_THE_LEDGER)
    }

    assert len(KNOW_THE_LEDGER) <= 5
    assert known == set()
