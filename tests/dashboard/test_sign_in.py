import re
from dataclasses import replace
from datetime import timedelta
from ipaddress import ip_network

import pytest
from itsdangerous import TimestampSigner

from hookonce.receiver.app import create_app
from hookonce.receiver.config.admin import Admin
from hookonce.receiver.dashboard.sessions import SESSION_TTL, Session, Sessions
from hookonce.receiver.dashboard.sign_in_throttle import MAX_ATTEMPTS, RETRY_INTERVAL, SignInThrottle
from tests.dashboard.conftest import TOKEN, Browser
from tests.support.for_each import for_each

STRONG = "a1" * 24


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
    wrong = [browser.sign_in(token="wrong").status_code for _ in range(MAX_ATTEMPTS)]

    answer = browser.sign_in()

    assert wrong == [403] * MAX_ATTEMPTS
    assert (answer.status_code, answer.headers["Retry-After"]) == (429, str(RETRY_INTERVAL.seconds))


@pytest.fixture
def strong(settings):
    """The application with a token that can't be guessed."""
    app = create_app(replace(settings, admin=Admin(token=STRONG)))
    yield app
    app.extensions["hookonce"].close()


def guess(app, times, **environ):
    browser = Browser(app.test_client())
    browser.client.environ_base.update(environ)
    return [browser.sign_in(token="wrong").status_code for _ in range(times)]


def test_token_that_can_not_be_guessed_signs_in_whatever_strangers_try(strong):
    assert guess(strong, MAX_ATTEMPTS + 2) == [403] * MAX_ATTEMPTS + [429] * 2

    assert Browser(strong.test_client()).sign_in(token=STRONG).status_code == 303


def test_link_signs_in_whatever_strangers_try(inbox):
    guess(inbox.app, MAX_ATTEMPTS + 1)

    assert inbox.browser().sign_in(token="", link=Sessions(TOKEN).link()).status_code == 303
    assert inbox.browser().sign_in(token="", link="made up").status_code == 429


def test_guessing_is_slowed_down_for_all_processes_together(inbox, settings):
    guess(inbox.app, MAX_ATTEMPTS)

    other = create_app(settings)
    answers = guess(other, 1), guess(other, 1, REMOTE_ADDR="192.0.2.1")
    other.extensions["hookonce"].close()

    assert answers == ([429], [403])


@pytest.mark.parametrize("url", ["unix:///nowhere/redis.sock", "redis://127.0.0.1:1"])
def test_guessing_is_slowed_down_without_redis_and_the_door_is_open(settings, url):
    app = create_app(replace(settings, redis_url=url))

    found = guess(app, MAX_ATTEMPTS + 1), guess(app, 1, REMOTE_ADDR="192.0.2.1")
    answer = Browser(app.test_client(), None)
    answer.client.environ_base["REMOTE_ADDR"] = "192.0.2.2"
    status = answer.sign_in().status_code
    app.extensions["hookonce"].close()

    assert (*found, status) == ([403] * MAX_ATTEMPTS + [429], [403], 303)


def test_guesses_through_a_trusted_proxy_slow_down_their_client_only(settings):
    app = create_app(
        replace(settings, admin=replace(settings.admin, trusted_proxies=(ip_network("127.0.0.1"),)))
    )

    guesser = guess(app, MAX_ATTEMPTS + 1, HTTP_X_FORWARDED_FOR="203.0.113.9, 192.0.2.1")
    hiding = guess(app, 1, HTTP_X_FORWARDED_FOR="198.51.100.7, 192.0.2.1")
    other = guess(app, 1, HTTP_X_FORWARDED_FOR="192.0.2.2")
    app.extensions["hookonce"].close()

    assert (guesser[-1], hiding, other) == (429, [429], [403])


def test_guesses_with_a_made_up_header_count_for_who_connects(inbox):
    found = [
        guess(inbox.app, 1, HTTP_X_FORWARDED_FOR=f"192.0.2.{number}") for number in range(MAX_ATTEMPTS + 1)
    ]

    assert found == [[403]] * MAX_ATTEMPTS + [[429]]


def test_guessing_may_go_on_after_a_pause():
    now = 1000.0
    attempts = SignInThrottle(lambda: now)
    assert [attempts.take("2001:db8::1") for _ in range(MAX_ATTEMPTS)] == [timedelta(0)] * MAX_ATTEMPTS

    assert attempts.take("2001:db8::2") > timedelta(0)
    assert attempts.take("192.0.2.1") == timedelta(0)
    now += RETRY_INTERVAL.total_seconds()
    assert attempts.take("2001:db8::1") == timedelta(0)
    assert attempts.take("2001:db8::1") > timedelta(0)


def test_clients_of_ipv4_in_ipv6_are_told_apart():
    attempts = SignInThrottle(lambda: 0.0)
    for _ in range(MAX_ATTEMPTS):
        attempts.take("::ffff:192.0.2.1")

    assert attempts.take("192.0.2.1") > timedelta(0)
    assert attempts.take("::ffff:192.0.2.2") == timedelta(0)


def test_address_not_seen_for_longest_is_forgotten_when_there_are_too_many(monkeypatch):
    monkeypatch.setattr("hookonce.receiver.dashboard.sign_in_throttle.MAX_ADDRESSES", 2)
    attempts = SignInThrottle(lambda: 0.0)
    first, second, third = (f"203.0.113.{n}" for n in range(3))

    for address in [*[first, second] * (MAX_ATTEMPTS - 1), first, second, third]:
        attempts.take(address)

    assert [attempts.take(each) > timedelta(0) for each in (second, first)] == [True, False]


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
    over = TimestampSigner("x").get_timestamp() + int(SESSION_TTL.total_seconds()) + 1
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


def test_form_token_looks_different_in_each_answer(browser):
    pages = [browser.get("/admin/").text for _ in range(2)]
    shown = [re.search('name="form_token" value="([^"]+)"', page)[1] for page in pages]

    assert shown[0][:43] != shown[1][:43]
    assert shown[0][43:] != shown[1][43:]
    assert browser.post("/admin/sign-out", form_token=shown[0]).status_code == 303


@for_each(["", "\udcff", "w\u00f6rtlich", "YQ==", "A" * 86, "A" * 88 + "===="])
def test_what_is_no_form_token_is_refused(typed):
    sessions = Sessions("a token")

    assert not sessions.is_form_token(sessions.begin("ada"), typed)


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
