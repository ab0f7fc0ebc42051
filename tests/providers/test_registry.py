import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from hookonce.providers import Delivery, Rejected
from hookonce.providers.kit import registry
from hookonce.providers.kit.conformance import CHECKS, cases
from hookonce.providers.kit.registry import discovery
from tests.support.senders_page import OPTIONS

ROOT = Path(__file__).parents[2]
SENDERS = {"github", "gitlab", "hmac", "shopify", "slack", "standard_webhooks", "stripe"}

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ACME = '''"""Acme signs the body.

Nothing surprises.
"""

from hookonce.providers.kit import Hmac, Sender, field, one_event, told_apart_by

scheme = Hmac(header="x-acme-signature", encoding="base64")
verify = scheme.verify
sign = scheme.sign
events = one_event(id=field("$.id"), type=field("$.type"))
sender = Sender(
    id_is_signed=True,
    retry_horizon=None,
    identity=told_apart_by("$.id"),
    check_secret=scheme.check_secret,
)
'''


@pytest.fixture
def place(tmp_path):
    (tmp_path / "acme.py").write_text(ACME)
    return tmp_path


def test_names_are_the_modules_of_the_folder():
    assert set(registry.names()) >= SENDERS
    assert not {"kit", "__init__"} & set(registry.names())
    assert registry.names() == sorted(registry.names())


@pytest.mark.parametrize("name", sorted(SENDERS - {"hmac"}))
def test_load_gives_every_sender_of_the_folder(name):
    provider = registry.load(name)

    assert provider.name == name
    assert provider.summary
    assert provider.sample
    assert provider.check_secret


@pytest.mark.parametrize("name", ["standard-webhooks", "Standard_Webhooks"])
def test_load_treats_dash_and_underscore_alike(name):
    assert registry.load(name).name == "standard_webhooks"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "strip",
            "no provider is called 'strip'; did you mean 'stripe'? `hookonce providers list` shows all",
        ),
        ("zzzz", "no provider is called 'zzzz'; `hookonce providers list` shows all"),
        ("kit", None),
        ("../stripe", None),
        ("", None),
    ],
)
def test_load_names_the_nearest_when_there_is_none(name, message):
    with pytest.raises(LookupError) as unknown:
        registry.load(name)

    assert message is None or str(unknown.value) == message


def test_loading_one_provider_imports_no_other():
    code = (
        "import sys; from hookonce.providers.kit.registry import load, names, listing; "
        "names(); listing(); load('stripe');"
        "print(sorted(m for m in sys.modules if m.startswith('hookonce.providers.') and m.count('.') == 2))"
    )

    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "['hookonce.providers.kit', 'hookonce.providers.stripe']"


def test_providers_import_nothing_but_the_standard_library_and_cryptography():
    code = (
        "import sys; from hookonce.providers.kit.registry import load, names\n"
        f"options = {OPTIONS!r}\n"
        "for name in names(): load(name, options=options.get(name))\n"
        "allowed = {'hookonce', 'cryptography', '_cffi_backend', '_openssl', '__main__'} | sys.stdlib_module_names\n"
        "others = {m for m in sys.modules if m.startswith(('hookonce.receiver', 'hookonce.jobs'))}\n"
        "print(sorted({m.partition('.')[0] for m in sys.modules} - allowed | others))"
    )

    done = subprocess.run(
        [sys.executable, "-S", "-c", SITE + code], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert done.stdout.strip() == "[]"


SITE = f"import sys; sys.path += {[path for path in sys.path if path.endswith('site-packages')]!r}\n"


@pytest.mark.parametrize("suffix", ["", "acme.py"])
def test_sender_dropped_into_a_folder_is_found_and_works(place, suffix):
    places = [str(place / suffix)]

    provider = registry.load("acme", places)
    body = provider.sample("e1", "a.b")

    assert "acme" in registry.names(places)
    assert [entry.summary for entry in registry.listing(places) if entry.name == "acme"] == [
        "Acme signs the body"
    ]
    headers = provider.sign(body, "s", NOW)
    delivery = Delivery("POST", "", headers, body)
    provider.verify(delivery, ["s"], NOW)
    assert provider.events(delivery)[0].id == "e1"
    with pytest.raises(Rejected):
        provider.verify(delivery, ["other"], NOW)


def test_module_that_comes_into_the_folder_of_ours_is_found(place, monkeypatch):
    monkeypatch.setattr(discovery.providers, "__path__", [str(place)])
    before = registry.names()

    (place / "other.py").write_text(ACME)
    os.utime(place, ns=(0, 0))  # a clock may stand still between the two

    assert set(registry.names()) - set(before) == {"other"}


def test_sender_outside_the_tree_can_be_put_through_the_contract(place):
    folder = place / "deliveries" / "acme"
    folder.mkdir(parents=True)
    headers = registry.load("acme", [str(place)]).sign(b'{"id":"e","type":"t"}', "secret", NOW)
    case = {
        "secret": "secret",
        "headers": dict(headers),
        "body": '{"id":"e","type":"t"}',
        "expected_event_id": "e",
    }
    (folder / "one.json").write_text(json.dumps(case))

    [captured] = cases(folder, places=[str(place)])

    for check in CHECKS:
        check(captured)


def test_module_of_the_guide_works_as_it_is_printed(tmp_path):
    guide = (ROOT / "docs" / "reference" / "declarations.md").read_text()
    (tmp_path / "acme.py").write_text(guide.partition("```python\n")[2].partition("```")[0])

    provider = registry.load("acme", [str(tmp_path)])
    body = provider.sample("evt_1", "order.paid")
    delivery = Delivery("POST", "", provider.sign(body, "secret", NOW), body)

    provider.verify(delivery, ["secret"], NOW)
    assert provider.events(delivery)[0].type == "order.paid"


def test_place_can_be_a_package_by_its_dotted_name(place, monkeypatch):
    package = place / "acme_pkg_x1" / "senders"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package.parent / "__init__.py").touch()
    (package / "acme.py").write_text(ACME)
    (package / "_helper.py").touch()
    monkeypatch.syspath_prepend(place)

    assert set(registry.names(["acme_pkg_x1.senders"])) - set(registry.names()) == {"acme"}
    assert registry.load("acme", ["acme_pkg_x1.senders"]).name == "acme"


def test_place_replaces_a_provider_of_the_same_name(tmp_path):
    (tmp_path / "stripe.py").write_text(ACME)

    assert registry.load("stripe", [str(tmp_path)]).summary == "Acme signs the body"
    assert registry.load("stripe").summary.startswith("Stripe")


@pytest.mark.parametrize("place", ["", "no/such/folder", "no_such_package", ".relative"])
def test_place_that_does_not_exist_is_named(place):
    with pytest.raises(LookupError, match=r"\[receiver\] providers"):
        registry.names([place])


def test_entry_point_adds_a_provider_but_replaces_none(monkeypatch):
    points = [
        EntryPoint(name, "hookonce.providers.github", discovery.GROUP) for name in ("acme-ep", "stripe")
    ]
    monkeypatch.setattr(discovery, "entry_points", lambda group: points if group == discovery.GROUP else [])

    assert registry.load("acme_ep").summary.startswith("GitHub")
    assert registry.load("stripe").summary.startswith("Stripe")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            '"""X."""\ndef verify(): ...\n',
            r"provider 'broken' \(.*broken\.py\) lacks events, sign, sender; a provider needs",
        ),
        (
            "import no_such_module_x\n",
            r"provider 'broken' \(.*broken\.py\) can't be imported: ModuleNotFoundError",
        ),
        ("raise SystemExit(0)\n", "can't be imported: SystemExit"),
        ("def (\n", r"provider 'broken' \(.*broken\.py\) can't be imported: SyntaxError"),
        ("def configure(options): return object()\n", "lacks verify, events, sign, sender"),
    ],
)
def test_broken_module_is_an_error_that_names_the_file(tmp_path, source, message):
    (tmp_path / "broken.py").write_text(source)

    with pytest.raises(ValueError, match=message):
        registry.load("broken", [str(tmp_path)])
    assert "broken" in registry.names([str(tmp_path)])
    assert registry.listing([str(tmp_path)])


def declaring(text="", **declared):
    """The module ACME with these declarations (None: not there) and `text` before them."""
    declared = {"id_is_signed": "True", "retry_horizon": "None", **declared}
    said = ", ".join(f"{name}={value}" for name, value in declared.items() if value is not None)
    return f"{ACME.partition('sender = ')[0]}{text}\nsender = Sender({said})\n"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (declaring(id_is_sigend="True"), "can't be imported: TypeError: .*'id_is_sigend'"),
        (declaring(id_is_signed=None), "can't be imported: TypeError: .*'id_is_signed'"),
        (declaring(retry_horizon=None), "can't be imported: TypeError: .*'retry_horizon'"),
        (declaring(volatile='("$.attempt")'), "can't be imported: ValueError: volatile is a text"),
        (
            ACME.partition("sender = ")[0],
            r"lacks sender; .* sender = Sender\(scheme=…, …\)",
        ),
        (ACME.partition("sender = ")[0] + "sender = dict()", "lacks sender; "),
        (declaring("def hanshake(delivery, secrets): ..."), r"has hanshake\(\); did you mean handshake\?"),
        (declaring("def decoded(delivery, secrets): ..."), r"has decoded\(\); did you mean decode\?"),
        (
            declaring("def verify(delivery, secrets, now): ..."),
            r"does not tell whether the body is signed; write Sender\(body_is_unsigned=False, …\)",
        ),
        (
            declaring("def verify(delivery, secrets, now): ...", scheme="Hmac(header='x')"),
            r"does not tell whether the body is signed; write Sender\(body_is_unsigned=False, …\)",
        ),
        (
            declaring(holds_repeats="'why'"),
            "has holds_repeats, which is for senders that sign the body and not the id",
        ),
        (declaring(body_is_unsigned="True"), "says body_is_unsigned=True, and Hmac shows"),
        (
            declaring("from hookonce.providers.kit import Token\nverify = Token(header='x').verify")[:-2]
            + ", body_is_unsigned=False)",
            "says body_is_unsigned=False, and Token shows",
        ),
        (
            declaring(
                "from datetime import timedelta\n"
                "from hookonce.providers.kit import StandardWebhooks\nverify = StandardWebhooks().verify",
                tolerance="timedelta(hours=1)",
            ),
            r"allows a signed time to be 0:05:00 off; write Sender\(scheme=…, …\)",
        ),
    ],
)
def test_declaration_that_would_be_passed_over_is_refused(tmp_path, source, message):
    (tmp_path / "broken.py").write_text(source)

    with pytest.raises(ValueError, match=message):
        registry.load("broken", [str(tmp_path)])


@pytest.mark.parametrize("function", ["handshake", "deliver", "sample", "decode", "check_secret"])
@pytest.mark.parametrize("is_configured", [False, True])
def test_function_of_a_module_is_used_without_being_declared(tmp_path, function, is_configured):
    made = "Configured(verify=verify, events=events, sign=sign, sender=sender)"
    text = f"def {function}(*_): ...\n" + (
        f"def configure(options): return {made}\n" if is_configured else ""
    )
    (tmp_path / "open.py").write_text(declaring(text).replace("import Hmac", "import Configured, Hmac"))

    assert getattr(registry.load("open", [str(tmp_path)]), function).__name__ == function


def test_scheme_says_what_a_module_leaves_out(tmp_path):
    text = ACME.replace("sender = Sender(", "sender = Sender(scheme=scheme,").replace(
        "verify = scheme.verify", ""
    )
    text = text.replace("sign = scheme.sign", "").replace("check_secret=scheme.check_secret,", "")
    (tmp_path / "acme.py").write_text(
        text.replace("Hmac(", "StandardWebhooks(")
        .replace("import Hmac", "import StandardWebhooks")
        .replace('header="x-acme-signature", encoding="base64"', "")
        .replace('identity=told_apart_by("$.id"),', "")
    )

    acme = registry.load("acme", [str(tmp_path)])
    scheme = acme.scheme

    assert (acme.verify, acme.check_secret, acme.tolerance) == (
        scheme.verify,
        scheme.check_secret,
        scheme.tolerance,
    )
    assert (acme.identity, acme.body_is_unsigned) == (scheme.identity, False)
    assert "webhook-signature" in acme.sign(b"{}", "whsec_" + "a2" * 16, NOW)


def test_function_of_a_module_may_be_called_anything_that_is_not_a_slip(tmp_path):
    (tmp_path / "fine.py").write_text(
        declaring("def _decoded(): ...\ndef parse(): ...\nfrom json import dumps")
    )

    assert registry.load("fine", [str(tmp_path)]).decode is None


def test_options_are_refused_by_a_provider_that_takes_none():
    with pytest.raises(ValueError, match="provider 'stripe' takes no options, but was given tolerance"):
        registry.load("stripe", options={"tolerance": 5})


def test_provider_has_defaults_for_all_that_a_module_leaves_out(place):
    provider = registry.load("acme", [str(place)])

    assert (provider.id_is_signed, provider.body_is_unsigned, provider.takes_keys) == (True, False, False)
    assert (provider.volatile, provider.statuses, provider.accepted, provider.handshake) == (
        (),
        {},
        None,
        None,
    )
    assert (provider.retry_horizon, provider.tolerance, provider.setup_url) == (None, None, None)


def test_provider_takes_keys_when_verify_has_the_keyword(tmp_path):
    own = "def verify(delivery, secrets, now, *, keys=None): ...\n"
    text = ACME.replace("verify = scheme.verify\n", own).replace("Sender(", "Sender(body_is_unsigned=False, ")
    (tmp_path / "keyed.py").write_text(text)

    assert registry.load("keyed", [str(tmp_path)]).takes_keys
