"""Mistakes and questions of `tests/questions`: the first answer of each face helps, and all faces give the same."""

import html
import json
import os
import re
import socket
import subprocess
import sys
import tomllib
from datetime import timedelta
from pathlib import Path
from shlex import split
from typing import NamedTuple

import pytest

from hookonce.receiver.api.remote_desk import RemoteDesk
from hookonce.receiver.api.routes import BY_NAME
from hookonce.receiver.desk.actions import ACTIONS
from hookonce.receiver.desk.refusals import Refused
from hookonce.receiver.ledger.access import api_tokens
from hookonce.receiver.ledger.access.api_tokens import Scope
from hookonce.receiver.remote import profiles
from hookonce.receiver.remote.client import Client
from hookonce.receiver.remote.errors import RemoteError
from hookonce.receiver.remote.profiles import Profile
from tests.desk.conftest import WAYS, agents_tools, refusal_of
from tests.support import incident, terminal

QUESTIONS = Path(__file__).parents[1] / "questions"
NEVER = ("Traceback", "secret_of_the_tests", "c2VjcmV0", "secret-of-the-tests", "token-of-the-tests", "\\n")
STATUSES = {
    "invalid": (422, 2),
    "not_found": (404, 4),
    "ambiguous": (404, 2),
    "contradictory": (409, 2),
    "forbidden": (403, 1),
    "unauthorized": (401, 1),
    "no_test_event": (409, 1),
}
"""HTTP's status and the exit code, by the API's code."""
TYPED = re.compile(
    r"^hookonce: (?:invalid value for '--\w+': |--)?|(?:(?:;|(?<=\?)) `hookonce [^`]* --help` says more)?\n$"
)
"""The words of a command around a refusal; at other faces the field's name stands before it."""


SCREEN = 24


class Answer(NamedTuple):
    """Return the first text of a face and its code: the shell's, HTTP's, or an agent's 1 for a refusal."""

    code: int
    text: str
    api_code: str = ""


def entries(name):
    return tomllib.loads((QUESTIONS / f"{name}.toml").read_text())


MISTAKES, ASKED = entries("mistakes"), entries("questions")


class Faces:
    """The faces of one inbox, each under a token by its name."""

    def __init__(self, everywhere, tokens, names):
        self._inbox, self._tokens, self.names = everywhere, tokens, names
        self.run = everywhere.run

    def command(self, line, of=""):
        ran = self.run(*(["--at", of] if of else []), *split(line))
        shown = ran.err if ran.code else ran.out + ran.err
        return Answer(ran.code, shown)

    def api(self, method, path, body=None, of="there"):
        options = {} if body is None else {"json": body}
        headers = {"Authorization": f"Bearer {self._tokens[of]}"}
        client = self._inbox.app.test_client(use_cookies=False)
        answer = client.open(f"/api/v1{path}", method=method, headers=headers, **options)
        found = answer.get_json(silent=True)
        if answer.status_code < 400:
            return Answer(answer.status_code, answer.text if found is None else as_text(found))
        return Answer(answer.status_code, found["detail"], found["code"])

    def tool(self, name, arguments, of="there"):
        desk = RemoteDesk(Client(Profile("", self._inbox.url, self._tokens[of])))
        try:
            told = agents_tools().call(lambda _: desk, name, arguments)
        except (Refused, RemoteError) as error:
            return Answer(1, str(error))
        return Answer(0, as_text(told.known) + as_text(told.said))

    def page(self, name, arguments):
        answer = self._inbox.page(name, arguments)
        shown = refusal_of(answer) if answer.status_code >= 400 else html.unescape(answer.text)
        return Answer(answer.status_code, shown)

    def action(self, face, name, arguments, of="there"):
        if face == "page":
            return self.page(name, arguments)
        if face == "tool":
            way = "plan" if ACTIONS[name].changes else "ask"
            return self.tool(way, {"action": name, "arguments": arguments}, of)
        operation, left = BY_NAME[name], dict(arguments)
        path = re.sub(r"{(\w+)}", lambda hole: str(left.pop(hole[1])), operation.path)
        if operation.method == "GET":
            return self.api("GET", path + "?" + "&".join(f"{k}={v}" for k, v in left.items()), None, of)
        return self.api(operation.method, path, left if "body" in operation.inputs else None, of)


def as_text(document):
    return json.dumps(document, ensure_ascii=False)


@pytest.fixture(scope="module")
def crowded(inbox):
    """The tokens of an inbox with an incident, and the names of what is in it."""
    connection = inbox.connection
    names = {key: str(value) for key, value in incident.begin(connection).items()}
    inbox.url = profiles.find("there").url
    tokens = {"there": profiles.find("there").token}
    for name, lasts in {"read": None, "expired": timedelta(0), "revoked": None}.items():
        tokens[name] = api_tokens.create(connection, name, [Scope.READ], lasts, "a test")
        profiles.save(Profile(name, inbox.url, tokens[name]))
    api_tokens.revoke(connection, "revoked", "a test")
    profiles.save(Profile("nobody", "http://127.0.0.1:1", tokens["read"]))
    profiles.save(Profile("astray", f"{inbox.url}/astray", tokens["read"]))
    return tokens, names


@pytest.fixture
def faces(everywhere, crowded, monkeypatch):
    for name, value in {"COLUMNS": "80", "LINES": "24"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("hookonce.receiver.remote.client.time.sleep", lambda _: None)
    incident.report(everywhere.connection)
    return Faces(everywhere, *crowded)


def test_there_are_forty_mistakes_and_twenty_questions():
    assert (len(MISTAKES) >= 40, len(ASKED) >= 20) == (True, True)


def of_project(mistake):
    return "env" in mistake or ("files" in mistake and "action" not in mistake)


@pytest.mark.parametrize("title", [title for title, each in MISTAKES.items() if not of_project(each)])
def test_mistake_is_answered_at_once_and_by_all_the_same(faces, title):
    mistake = MISTAKES[title]
    for name, text in mistake.get("files", {}).items():
        Path(name).write_text(text)

    answers = {face: answer(faces, face, mistake) for face in faces_of(mistake)}

    for face, each in answers.items():
        says = mistake["says"] if face in {"command", "at"} else mistake.get("json", mistake["says"])
        assert [said for said in says if said not in each.text] == [], each
        assert [word for word in NEVER if word in each.text] == []
    typed = [each for face, each in answers.items() if face in {"command", "at"}]
    if "refused" not in mistake:
        assert [each.code for each in typed] == [mistake["code"]] * len(typed)
        return
    status, code = STATUSES[mistake["refused"]]
    assert [each.code for each in typed] == [code] * len(typed)
    assert [each.text.count("\n") for each in typed] == [1] * len(typed)
    if "api" in answers:
        assert (answers["api"].code, answers["api"].api_code) == (status, mistake["refused"])
    sentences = {face: sentence(each.text) for face, each in answers.items()}
    assert len(set(sentences.values())) == 1 or mistake.get("alike") is False, sentences


def faces_of(mistake):
    return mistake.get("faces") or ([*WAYS] if "action" in mistake else ["command"])


def answer(faces, face, mistake):
    token = mistake.get("token", "there")
    if face == "command":
        return faces.command(mistake["cli"])
    if face == "at":
        return faces.command(mistake["cli"], token)
    return faces.action(face, mistake["action"], mistake["arguments"], token)


def sentence(text):
    """Return a refusal without what a command says around it, and without the field that it is about."""
    return re.sub(r"^\w+: ", "", TYPED.sub("", TYPED.sub("", text)))


@pytest.mark.parametrize("title", [title for title, each in MISTAKES.items() if of_project(each)])
def test_mistake_in_a_project_is_answered_at_once(faces, title, tmp_path, monkeypatch):
    mistake = MISTAKES[title]
    configuration = Path(os.environ["HOOKONCE_CONFIG"]).read_text()
    if "handlers.py" in mistake.get("files", {}):
        configuration = configuration.replace("[receiver]", '[receiver]\nhandlers = ["handlers"]')
    for name, text in ({"hookonce.toml": configuration} | mistake.get("files", {})).items():
        (tmp_path / name).write_text(text)
    for name, value in {"HOOKONCE_CONFIG": "hookonce.toml", **mistake.get("env", {})}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("hookonce.receiver.cli.doctor.handlers.TIME_LIMIT", timedelta(seconds=100))
    monkeypatch.chdir(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as busy:
        port = str(busy.getsockname()[1])
        command = split(mistake["cli"].replace("{busy_port}", port))
        code, said = started(command) if command[0] in {"serve", "worker"} else whole(faces.run(*command))

    wanted = [each.replace("{busy_port}", port) for each in mistake["says"]]
    assert code == mistake["code"], said
    assert any(all(each in line for each in wanted) for line in said.splitlines()[:SCREEN]), said
    assert [word for word in NEVER if word in said] == [], said


def whole(ran):
    return ran.code, ran.out + ran.err


def started(command):
    """Run what makes processes of its own."""
    ran = subprocess.run(
        [sys.executable, "-m", "hookonce.receiver.cli", *command],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    return ran.returncode, ran.stdout + ran.stderr


@pytest.mark.parametrize("title", ASKED)
def test_question_is_answered_on_the_first_screen_and_by_all_the_same(faces, title):
    asked = json.loads(re.sub(r"{(\w+)}", lambda hole: faces.names[hole[1]], as_text(ASKED[title])))
    method, path, *body = asked["api"].split(" ", 2)
    body = json.loads(body[0]) if body else None
    tool, arguments = asked["tool"]

    shown = {
        "command": faces.command(asked["cli"]),
        "at": faces.command(asked["cli"], "there"),
        "api": faces.api(method, path, body),
        "tool": faces.tool(tool, arguments),
    }

    rows, is_paged = terminal.screen(*split(asked["cli"]))
    screens = {face: "\n".join(each.text.splitlines()[:SCREEN]) for face, each in shown.items()}
    screens["terminal"] = " ".join(" ".join(rows).split())  # a cell may be folded
    for face, screen in screens.items():
        assert [fact for fact in asked["facts"] if fact not in screen] == [], (face, screen, rows, is_paged)
    assert shown["command"].text == shown["at"].text or is_told_of_now(shown)
    seen = [
        faces.command(asked["cli"], "read"),
        faces.api(method, path, body, "read"),
        faces.tool(tool, arguments, "read"),
    ]
    if needs := asked.get("needs"):
        assert [f"lacks the scope {needs}; `hookonce tokens create" in each.text for each in seen] == [
            True
        ] * 3
    else:
        assert [each.code for each in seen] == [0, 200, 0]


def is_told_of_now(shown):
    return re.sub(r"\d+", "", shown["command"].text) == re.sub(r"\d+", "", shown["at"].text)


def test_questions_change_nothing(faces, everywhere):
    states = [
        "SELECT id, status, due_at FROM hookonce.event_states ORDER BY id",
        "SELECT event, handler, status, attempts, cycle FROM hookonce.run_states ORDER BY 1, 2",
        "SELECT count(*) FROM hookonce.audit WHERE action <> 'look'",
    ]
    before = [everywhere.connection.execute(each).fetchall() for each in states]

    for asked in ASKED.values():
        faces.tool(*asked["tool"])
        faces.command(asked["cli"].format_map(faces.names))

    assert [everywhere.connection.execute(each).fetchall() for each in states] == before
