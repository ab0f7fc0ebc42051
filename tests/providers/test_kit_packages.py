import ast
import re
from pathlib import Path

from tests.support.for_each import for_each

PROVIDERS = Path(__file__).parents[2] / "providers"
KIT = PROVIDERS / "kit"
ORDER = ("reading", "crypto", "signing", "events", "schemes", "registry", "conformance")
PACKAGES = [KIT, *(KIT / name for name in ORDER)]
SENDERS = [path for path in sorted(PROVIDERS.glob("*.py")) if path.name != "__init__.py"]
APART = {
    "crypto.certificates",
    "crypto.encrypted_body",
    "crypto.jws",
    "crypto.public_keys",
    "reading.xml_body",
    "registry.declared_options",
    "registry.key_pair_options",
    "registry.options",
    "registry.challenge_option",
    "registry.token_sender",
    "schemes.google_oidc",
    "schemes.http_message_signature",
    "schemes.jwt",
    "schemes.public_key_signature",
    "schemes.sns",
}
"""What would slow every sender down, and is needed by few: imported by its own name."""
TESTING = ("receiver/cli/new/", "receiver/cli/commands/new.py", "receiver/cli/capture/")


def imported(path):
    """Every module of the kit that a file imports, `crypto.jws` for short; empty for what is the facade's."""
    for node in ast.walk(ast.parse(path.read_text())):
        if (
            isinstance(node, ast.ImportFrom)
            and node.module
            and node.module.startswith("hookonce.providers.kit")
        ):
            name = node.module.removeprefix("hookonce.providers.kit").lstrip(".")
            for alias in node.names:
                inner = f"{name}.{alias.name}".lstrip(".")
                is_module = (KIT / f"{inner.replace('.', '/')}.py").exists() or (KIT / inner).is_dir()
                yield inner if is_module else name


def modules(package):
    found = {path.stem for path in package.glob("*.py")} | {
        path.parent.name for path in package.glob("*/__init__.py")
    }
    return found - {"__init__"}


@for_each(PACKAGES)
def test_package_names_each_of_its_modules_once(package):
    doc = ast.get_docstring(ast.parse((package / "__init__.py").read_text()))

    assert sorted(re.findall(r"`(\w+)`", doc)) == sorted(modules(package))


@for_each(ORDER)
def test_package_of_the_kit_builds_only_on_those_before_it(package):
    later = ORDER[ORDER.index(package) + 1 :]
    found = {name for path in (KIT / package).glob("*.py") for name in imported(path)}

    assert not [name for name in found if name.split(".")[0] in later]


def test_nothing_but_tests_and_the_maker_of_tests_imports_the_contract_test():
    root = PROVIDERS.parent
    files = [path for top in ("receiver", "jobs", "providers") for path in (root / top).rglob("*.py")]
    users = {
        str(path.relative_to(root))
        for path in files
        if "conformance" in {n.split(".")[0] for n in imported(path)}
    }

    assert not [each for each in users if not each.startswith((*TESTING, "providers/kit/conformance/"))]


@for_each(SENDERS)
def test_sender_imports_the_kit_by_its_facade(sender):
    assert set(imported(sender)) <= {"", *APART}
