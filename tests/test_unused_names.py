"""A name that nothing in the product uses is deleted, or stands here with its reason.

A name is used where it is read, on whatever object: the check is blind to a method that has a living namesake. Used are
besides: what a decorator registers, what a template names, what is offered in a package's `__init__.py`, and what a
class has that derives from a library's.
"""

import ast
import re

from tests.test_architecture import MODULES, ROOT, name_of

ONLY_LOOK_UNUSED = {
    "hookonce.django.apps.HookonceConfig": "Django finds the one class of apps.py",
    "hookonce.django.urls.app_name": "Django's",
    "hookonce.django.urls.urlpatterns": "Django's",
    "hookonce.testing.django.InboxTestCase": "for users' tests: docs/how-to/testing.md",
    "jobs.event.after_commit": "for users' handlers: docs/how-to/approximate.md",
    "jobs.event.not_after": "for users' handlers: docs/how-to/commands.md",
    "providers.kit.conformance.CHECKS": "for users' senders: docs/adding-a-provider.md",
    "providers.kit.conformance.cases.is_twin": "the page of senders leaves twins out",
    "providers.kit.sender.horizon_unknown": "the contract test wants a reason of each sender that gives no time",
    "providers.kit.sender.runs_repeats": "the page of senders gives the reason",
    "receiver.config.alerts.lost_leases": "jobs/alerts/conditions.py reads it by its name",
    "receiver.config.alerts.signature_failures": "the same",
    "receiver.idempotency.dynamodb.create_table": "for users: docs/how-to/idempotent-endpoints.md",
    "receiver.ledger.database.public_tables._Promised": "a type, named in quotes",
    "receiver.monitoring.log_capture.writelines": "of a stream, for those who print",
    "receiver.vocabulary.VARIABLES": "the page of environment variables is made of them",
    "receiver.web.http.chunks.on_body": "httptools calls it",
    "receiver.web.http.chunks.on_chunk_header": "httptools calls it",
    "receiver.web.http.chunks.on_header": "httptools calls it",
    "receiver.web.http.chunks.on_message_complete": "httptools calls it",
    "receiver.web.http.head.on_headers_complete": "httptools calls it",
}
REGISTER_NOTHING = {
    *("abstractmethod", "cache", "cached_property", "classmethod", "contextmanager", "dataclass", "final"),
    *("lru_cache", "overload", "override", "property", "runtime_checkable", "staticmethod"),
}
"""Decorators; every other hands what it decorates to a framework."""
LANGUAGE = ("abc", "collections", "contextlib", "enum", "typing")
"""Modules whose classes call nothing of a class that derives from them."""
SETTINGS = ("receiver.web.gunicorn_conf", "receiver.ledger.database.migrations.versions")
"""Modules that gunicorn and Alembic read."""
TAG = re.compile(r"{[{%].*?[%}]}", re.DOTALL)
TEMPLATES = ROOT / "receiver/dashboard/templates"


def trees():
    paths = [*MODULES, *ROOT.glob("hookonce/*.py"), ROOT / "wsgi.py"]
    return {name_of(path): ast.parse(path.read_text()) for path in paths}


def definitions(body, foreign):
    """Yield what statements define: functions, classes and their members, constants."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            if all(last_name(each) in REGISTER_NOTHING for each in node.decorator_list):
                yield node.name
            if isinstance(node, ast.ClassDef) and node.name not in foreign:
                yield from definitions(node.body, foreign)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            inner = (each for target in targets for each in ast.walk(target))
            yield from (each.id for each in inner if isinstance(each, ast.Name))
        elif isinstance(node, ast.If | ast.Try):
            yield from definitions([*node.body, *node.orelse], foreign)


def last_name(node):
    """Return `cache` for `cache`, `functools.cache`, `cache()` and `cache[int]`."""
    while isinstance(node, ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def uses(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute) and not isinstance(node.ctx, ast.Store):
            yield last_name(node)
        elif isinstance(node, ast.MatchClass):
            yield from node.kwd_attrs
        elif isinstance(node, ast.ImportFrom):  # `import name as name` offers it
            yield from (alias.name for alias in node.names if alias.asname == alias.name)
        elif isinstance(node, ast.Assign) and "__all__" in map(last_name, node.targets):
            yield from ast.literal_eval(node.value)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from re.findall(r"^(?:hookonce)?\.[\w.:]*\b(\w+)$", node.value)


def of_libraries(everything):
    """Return the classes of ours that derive from a library's, at any remove."""
    bases = {}
    for module, tree in everything.items():
        origins = {
            (alias.asname or alias.name): (getattr(node, "module", None) or alias.name).split(".")[0]
            for node in ast.walk(tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                bases[module, node.name] = [(last_name(each), origin(each, origins)) for each in node.bases]
    ours = {"hookonce", "", *LANGUAGE}
    found = {key for key, each in bases.items() if any(library not in ours for _, library in each)}
    names = {name for _, name in found}
    while more := {key for key, each in bases.items() if any(b in names for b, _ in each)} - found:
        found |= more
        names |= {name for _, name in more}
    return found


def origin(base, origins):
    return origins.get(ast.unparse(base).partition(".")[0].partition("[")[0], "")


def unused():
    everything = trees()
    foreign = of_libraries(everything)
    used = {name for tree in everything.values() for name in uses(tree)}
    tags = (tag for page in TEMPLATES.rglob("*.html") for tag in TAG.findall(page.read_text()))
    used |= {word for tag in tags for word in re.findall(r"\w+", tag)}
    return {
        f"{module}.{name}"
        for module, tree in everything.items()
        if not module.startswith(SETTINGS)
        for name in definitions(tree.body, {name for inside, name in foreign if inside == module})
        if name not in used and not name.startswith("__")
    }


def test_every_name_is_used_or_has_a_reason():
    found, listed = unused(), set(ONLY_LOOK_UNUSED)

    assert found - listed == set(), "delete them, or list them with their reason"
    assert listed - found == set(), "these are used"
    assert len(ONLY_LOOK_UNUSED) <= 40
