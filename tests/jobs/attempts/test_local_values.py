import os
from collections import OrderedDict
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from enum import StrEnum

import pytest

from hookonce.jobs.failures.local_values import MAX_VALUE, MAX_VARIABLES, local_values
from hookonce.jobs.failures.traceback_capture import MAX_LENGTH, captured
from hookonce.jobs.handlers import GiveUp
from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.config.settings import load_settings
from hookonce.receiver.encryption import Keyring
from hookonce.receiver.ledger.queries import event_details
from hookonce.receiver.ledger.runs.run_limits import BatchSize
from hookonce.receiver.ledger.store import store
from hookonce.receiver.privacy.at_rest import sealed
from tests.support.new_event import new_event

KEYRING = Keyring([os.urandom(32)])


@dataclass
class Order:
    number: int
    card_token: str
    lines: list


class Field(StrEnum):
    API_KEY = "api_key"


class Hostile:
    """Nothing of a value is called: each of these would hang, lie or raise."""

    def refuse(self, *_):
        raise AssertionError("code of the user's was called")

    __repr__ = __str__ = __eq__ = __hash__ = __len__ = __iter__ = __bool__ = __format__ = refuse
    __getattribute__ = __lt__ = refuse


def values(**found):
    return dict(local_values(found, str))


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("ann", "'ann'"),
        (b"\x00a", r"b'\x00a'"),
        (Decimal("1.20"), "Decimal('1.20')"),
        ({"id": 7, "api_key": "abc"}, "{'id': 7, 'api_key': [secret]}"),
        (list(range(9)), "[0, 1, 2, 3, 4, 5, … 3 more]"),
        ([[[1, 2]]], "[[list of 2]]"),
        (Order(7, "tok_1", [1]), "Order(number=7, card_token=[secret], lines=[1])"),
        (OrderedDict(a=1), "OrderedDict()"),
        ({Field.API_KEY: "abc"}, "{Field(): [secret]}"),
        (1 << 20_000, "int()"),
    ],
    ids=lambda each: type(each).__name__,
)
def test_value_is_shown_by_what_it_holds(value, shown):
    assert values(it=value) == {"it": shown}


def test_no_code_of_a_value_is_called():
    assert values(it=Hostile(), many=[Hostile()]) == {"it": "Hostile()", "many": "[Hostile()]"}


def refuse(*_):
    raise SystemExit("code of the user's was called")


def of_strange_class():
    members = dict.fromkeys(["__hash__", "__eq__", "__getattribute__"], refuse)
    members |= dict.fromkeys(["__name__", "__module__", "__mro__"], property(refuse))
    return type("Meta", (type,), members)("Strange", (), {})()


class Liar:
    __dict__ = property(refuse)


class Held:
    def __init__(self):
        self.__dict__ = type("Namespace", (dict,), {"items": refuse})(token="t", number=1)


@pytest.mark.parametrize(
    ("made", "shown"),
    [(of_strange_class, "Strange()"), (Liar, "Liar()"), (Held, "Held(token=[secret], number=1)")],
)
def test_no_code_of_a_class_is_called(made, shown):
    assert values(it=made(), many=[made()])["it"] == shown


class Headers:
    def __init__(self, *raw):
        self.raw = list(raw)


PAIR = ("Authorization", "Bearer abc")
OTHER = ("Accept", "text/html")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (dict([PAIR, OTHER]), "{'Authorization': [secret], 'Accept': 'text/html'}"),
        ({b"x-api-key": b"abc", None: 1}, "{b'x-api-key': [secret], None: 1}"),
        (PAIR, "('Authorization', [secret])"),
        ([PAIR, OTHER], "[('Authorization', [secret]), ('Accept', 'text/html')]"),
        ((list(PAIR), OTHER), "(['Authorization', [secret]], ('Accept', 'text/html'))"),
        ([(b"cookie", b"abc")], "[(b'cookie', [secret])]"),
        ([*PAIR, *OTHER], "['Authorization', [secret], 'Accept', 'text/html']"),
        ([{"name": "Authorization", "value": "abc"}], "[{'name': 'Authorization', 'value': [secret]}]"),
        (Headers(*PAIR), "Headers(raw=['Authorization', [secret]])"),
        (Headers(PAIR), "Headers(raw=[tuple of 2])"),
        ({"headers": [PAIR]}, "{'headers': [tuple of 2]}"),
        (("a token for you " * 5, "abc"), f"('{'a token for you ' * 5}', 'abc')"),
    ],
    ids=lambda each: type(each).__name__,
)
def test_credential_is_masked_by_its_name_wherever_that_stands(value, shown):
    assert values(it=value) == {"it": shown}


@pytest.mark.parametrize(
    "name", ["pwd", "userPwd", "creds", "otp", "session_id", "signature", "pin", "user_pass"]
)
def test_name_that_no_header_has_is_a_credential_s_too(name):
    assert values(**{name: "abc"}, opinion="o", passage="p") == {
        name: "[secret]",
        "opinion": "'o'",
        "passage": "'p'",
    }


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://u:p@w@host/db", "'postgresql://u:[secret]@host/db'"),
        ("host=h password=hunter2 port=1", "'host=h password=[secret] port=1'"),
        ("a?token=abc&b=c", "'a?token=[secret]&b=c'"),
        ("http://host:80/a", "'http://host:80/a'"),
        ('{"password": "hunter2", "a": [1]}', """'{"password": "[secret]", "a": [1]}'"""),
        ('{"user_password" : "hun, \\"t}er\'2"}', """'{"user_password" : "[secret]"}'"""),
        ('{"apiKey":"abc","token":12}', """'{"apiKey":"[secret]","token":[secret]}'"""),
        ('{"a": "{\\"token\\": \\"a b\\"}"}', r"""'{"a": "{\\"token\\": \\"[secret]\\"}"}'"""),
        ("{'token': 'a b', 'b': 1}", """"{'token': '[secret]', 'b': 1}\""""),
        ("password='hun ter' port=1", """"password='[secret]' port=1\""""),
        ('{"token": "", "secret": []}', """'{"token": "", "secret": []}'"""),
        ('{"secret": "[secret]"}', """'{"secret": "[secret]"}'"""),
        ("password: ", "'password: '"),
    ],
)
def test_credential_is_masked_within_a_text(text, shown):
    assert values(it=text, them=[text]) == {"it": shown, "them": f"[{shown}]"}


def test_names_of_credentials_are_masked_and_functions_and_modules_left_out():
    found = values(password="hunter2", auth_token="t", customer="c", os=os, values=values, Order=Order)

    assert found == {"password": "[secret]", "auth_token": "[secret]", "customer": "'c'"}


def test_many_variables_and_long_values_are_cut_after_they_were_masked():
    many = {f"v{number}": "x" * 10_000 for number in range(99)} | {"last": "x" * MAX_VALUE + "whsec_a"}
    found = dict(local_values(many, lambda text: text.replace("x" * 9 + "whsec_a", "[secret]")))

    assert len(found) == MAX_VARIABLES
    assert {len(value) for value in found.values()} == {MAX_VALUE}
    assert not [value for value in found.values() if "whsec" in value]


def credit(event, _tx):
    customer, attempt = event.data["customer"], 1
    raise LookupError(f"no such customer in attempt {attempt}: {len(customer)}")


def shown(inbox, keyring):
    (failure,) = event_details.detail(inbox.connection, 1, keyring).with_content().failures
    return dict(failure.frames.errors[-1].frames[0].local_values)


def test_variables_are_kept_sealed_where_that_is_asked_for(inbox):
    inbox.settings = replace(inbox.settings, keyring=KEYRING, keep_locals=True)
    inbox.on(credit, attempts=1)
    store(inbox.connection, [sealed(new_event("a", b'{"customer": "ann@example.com"}'), KEYRING)])

    inbox.work()

    found = shown(inbox, KEYRING)
    assert found == {
        "event": "ReceivedEvent()",
        "_tx": "Connection()",
        "customer": "'ann@example.com'",
        "attempt": "1",
    }
    assert b"ann@" not in inbox.rows("SELECT traceback FROM hookonce.failures")[0][0]


@pytest.mark.parametrize("settings", [{"keyring": KEYRING}, {"keep_locals": True}])
def test_no_variables_are_kept_unasked_or_in_the_clear(inbox, settings):
    inbox.settings = replace(inbox.settings, **settings)
    inbox.on(credit, attempts=1)
    inbox.deliver("a", body=b'{"customer": "ann@example.com"}')

    inbox.work()

    assert shown(inbox, inbox.settings.keyring) == {}


def test_no_variables_of_a_batch_are_kept_of_one_of_its_events(inbox):
    def credit_all(events, _tx):
        customers = [event.data["customer"] for event in events]
        raise GiveUp(f"one of {len(customers)}", event=events[0])

    inbox.settings = replace(inbox.settings, keyring=KEYRING, keep_locals=True)
    inbox.on(credit_all, batch=BatchSize(10, timedelta(0)))
    store(
        inbox.connection,
        [
            sealed(new_event(name, f'{{"customer": "{name}@example.com"}}'.encode()), KEYRING)
            for name in ("ann", "bob")
        ],
    )

    inbox.work()

    assert shown(inbox, KEYRING) == {}


def recurse(depth):
    filling = ["\N{GRINNING FACE}" * 500] * depth
    return recurse(depth - 1) if depth else filling[0]


def test_traceback_with_variables_is_as_bounded_as_without():
    try:
        recurse(200)
    except IndexError as error:
        found = captured(error, with_locals=True)

    frames = found.errors[-1].frames
    assert len(found.as_json) <= MAX_LENGTH
    assert frames[-1].local_values == (("depth", "0"), ("filling", "[]"))
    assert not frames[0].local_values


def test_variables_without_encryption_keys_are_a_mistake(tmp_path):
    (tmp_path / "hookonce.toml").write_text("[receiver]\nkeep_locals = true\n")

    with pytest.raises(ConfigError, match="keep_locals keeps values of events: it needs encryption_keys"):
        load_settings({"HOOKONCE_CONFIG": str(tmp_path / "hookonce.toml")})
