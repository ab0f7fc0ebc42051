import re
from datetime import timedelta

import pytest
from itsdangerous import TimestampSigner

from receiver.admin.attempts import AT_ONCE, PAUSE, Attempts
from receiver.admin.sessions import LASTS, Session, Sessions
from receiver.settings import ConfigError, load_settings
from tests.admin.conftest import TOKEN


def test_dashboard_is_not_there_without_a_token(closed):
    assert [closed.get(path).status_code for path in ("/admin", "/admin/", "/admin/sign-in")] == [404] * 3


@pytest.mark.parametrize("path", ["/admin/", "/admin/events?status=dead", "/admin/nothing"])
def test_page_sends_a_stranger_to_sign_in(inbox, path):
    answer = inbox.browser().get(path)

    assert answer.status_code == 303
    assert answer.location.startswith("/admin/sign-in")


def test_fragment_sends_a_stranger_to_sign_in(inbox):
    answer = inbox.browser().get("/admin/", **{"HX-Request": "true"})

    assert (answer.status_code, answer.headers["HX-Redirect"]) == (401, "/admin/sign-in")


def test_token_signs_in_and_is_audited(inbox):
    browser = inbox.browser()

    answer = browser.sign_in(name="Ada \x1b[2J")

    assert (answer.status_code, answer.location) == (303, "/admin/")
    assert browser.get("/admin/").status_code == 200
    assert inbox.audit() == [("Ada [2J (dashboard)", "sign-in", "dashboard")]


def test_session_cookie_is_out_of_reach_of_scripts_and_other_sites(inbox):
    cookie = next(
        c for c in inbox.browser().sign_in().headers.getlist("Set-Cookie") if "hookonce_admin=" in c
    )

    assert {"HttpOnly", "SameSite=Strict", "Path=/admin"} <= set(cookie.split("; "))
    assert "Secure" not in cookie


def test_session_cookie_is_secure_behind_https(inbox):
    browser = inbox.browser()
    secret = re.search('name="form" value="([^"]+)"', browser.get("/admin/sign-in").text)[1]

    form = {"form": secret, "token": TOKEN}
    answer = browser.client.post("/admin/sign-in", data=form, headers={"X-Forwarded-Proto": "https"})

    assert "; Secure;" in answer.headers["Set-Cookie"]


@pytest.mark.parametrize("token", ["", "wrong", TOKEN[:-1], TOKEN + " ", "t\xf6k\xe9n"])
def test_wrong_token_is_refused(inbox, token):
    browser = inbox.browser()

    answer = browser.sign_in(token=token)

    assert answer.status_code == 403
    assert browser.get("/admin/").status_code == 303


def test_sign_in_without_its_form_is_refused(inbox):
    answer = inbox.app.test_client().post("/admin/sign-in", data={"token": TOKEN, "form": ""})

    assert answer.status_code == 400
    assert "hookonce_admin=" not in str(answer.headers)


def test_guessing_is_slowed_down_even_for_the_right_token(inbox):
    browser = inbox.browser()
    wrong = [browser.sign_in(token="wrong").status_code for _ in range(AT_ONCE)]

    answer = browser.sign_in()

    assert wrong == [403] * AT_ONCE
    assert (answer.status_code, answer.headers["Retry-After"]) == (429, str(PAUSE.seconds))


def test_guessing_may_go_on_after_a_pause():
    now = 1000.0
    attempts = Attempts(lambda: now)
    for _ in range(AT_ONCE):
        attempts.failed("2001:db8::1")

    assert attempts.wait("2001:db8::2") > timedelta(0)
    assert attempts.wait("192.0.2.1") == timedelta(0)
    now += PAUSE.total_seconds()
    assert attempts.wait("2001:db8::1") == timedelta(0)


def test_address_not_seen_for_longest_is_forgotten_when_there_are_too_many(monkeypatch):
    monkeypatch.setattr("receiver.admin.attempts.MOST_ADDRESSES", 2)
    attempts = Attempts(lambda: 0.0)
    first, second, third = (f"203.0.113.{n}" for n in range(3))

    for address in [*[first, second] * AT_ONCE, first, third]:
        attempts.failed(address)

    assert [attempts.wait(each) > timedelta(0) for each in (first, second, third)] == [True, False, False]


def test_link_signs_in_once(inbox):
    link = Sessions(TOKEN).link()

    answers = [inbox.browser().sign_in(token="", link=link).status_code for _ in range(2)]

    assert answers == [303, 403]


@pytest.mark.parametrize(
    "link", ["made up", Sessions("another token, long").link()], ids=["made up", "another token's"]
)
def test_link_that_is_not_ours_is_refused(inbox, link):
    assert inbox.browser().sign_in(token=TOKEN, link=link).status_code == 403


def test_session_ends_with_time_and_with_the_token(monkeypatch):
    sessions = Sessions(TOKEN)
    cookie = sessions.cookie(Session("id", "who"))

    assert sessions.read(cookie) == Session("id", "who")
    assert Sessions(TOKEN + "2").read(cookie) is None
    over = TimestampSigner("x").get_timestamp() + int(LASTS.total_seconds()) + 1
    monkeypatch.setattr(TimestampSigner, "get_timestamp", lambda _: over)
    assert sessions.read(cookie) is None


def test_cookie_that_was_changed_is_none(browser):
    browser.client.set_cookie("hookonce_admin", "WyJhIiwiYiJd.aaaa.bbbb", path="/admin")

    assert browser.get("/admin/").status_code == 303


def test_sign_out_needs_the_form_token_and_ends_the_session(inbox, browser):
    browser.page = None
    assert browser.post("/admin/sign-out").status_code == 403

    browser.get("/admin/")
    assert browser.post("/admin/sign-out").status_code == 303

    assert browser.get("/admin/").status_code == 303
    assert [action for _, action, _ in inbox.audit()] == ["sign-in", "sign-out"]


def test_copy_of_a_cookie_is_worthless_after_sign_out(inbox, browser):
    browser.get("/admin/")
    kept = browser.client.get_cookie("hookonce_admin", path="/admin").value
    browser.post("/admin/sign-out")

    thief = inbox.browser()
    thief.client.set_cookie("hookonce_admin", kept, path="/admin")

    assert thief.get("/admin/events").location.startswith("/admin/sign-in")


def test_form_token_of_another_session_is_refused(inbox, browser):
    other = inbox.browser()
    other.sign_in()
    other.get("/admin/")

    browser.page = other.page

    assert browser.post("/admin/sign-out").status_code == 403


@pytest.mark.parametrize(
    ("wanted", "location"),
    [
        ("/admin/events?status=dead", "/admin/events?status=dead"),
        ("https://evil.example/admin/", "/admin/"),
        ("//evil.example/admin/", "/admin/"),
        ("/admin/\\evil.example", "/admin/"),
        ("/admin/\r\nSet-Cookie: a=b", "/admin/"),
        ("javascript:alert(1)", "/admin/"),
        ("//[", "/admin/"),
    ],
)
def test_sign_in_goes_on_to_pages_of_ours_only(inbox, wanted, location):
    browser = inbox.browser()
    secret = re.search('name="form" value="([^"]+)"', browser.get("/admin/sign-in").text)[1]

    form = {"form": secret, "token": TOKEN}
    answer = browser.client.post("/admin/sign-in", query_string={"next": wanted}, data=form)

    assert answer.location == location


@pytest.mark.parametrize(
    ("token", "mistake"),
    [
        ("env:ABSENT", "[admin] token: ABSENT is not set"),
        ("plain text", "[admin] token: a secret is given by reference"),
        ("env:SHORT", "the admin token has 5 characters; expected 16 or more"),
    ],
)
def test_useless_token_is_a_mistake_in_the_configuration(tmp_path, token, mistake):
    (tmp_path / "hookonce.toml").write_text(f'[admin]\ntoken = "{token}"\n')

    with pytest.raises(ConfigError) as caught:
        load_settings({"HOOKONCE_CONFIG": str(tmp_path / "hookonce.toml"), "SHORT": "short"})

    assert [each.startswith(mistake) for each in caught.value.mistakes] == [True]


def test_misspelt_setting_of_the_dashboard_is_told(tmp_path):
    (tmp_path / "hookonce.toml").write_text('[admin]\ntokn = "env:X"\n')

    with pytest.raises(ConfigError, match=r"\[admin\] has no setting 'tokn'; did you mean 'token'"):
        load_settings({"HOOKONCE_CONFIG": str(tmp_path / "hookonce.toml")})


def test_optional_token_may_be_absent(tmp_path):
    (tmp_path / "hookonce.toml").write_text('[admin]\ntoken = "env:ABSENT?"\n')

    assert load_settings({"HOOKONCE_CONFIG": str(tmp_path / "hookonce.toml")}).admin_token == ""
