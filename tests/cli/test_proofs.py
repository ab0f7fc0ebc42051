import subprocess

import pytest

pytestmark = pytest.mark.usefixtures("place")
BODY = b'{"id": "evt_1", "type": "invoice.paid", "created": 1700000000}'


@pytest.fixture
def written(hookonce, place):
    """Sign a body and write it as a .http file; gives its name."""

    def write(*arguments, body=BODY):
        (place / "body.json").write_bytes(BODY)
        signed = hookonce("sign", *arguments, "body.json")
        assert signed.code == 0, signed.err
        head = b"POST /hooks/stripe HTTP/1.1\nhost: in.example\n" + signed.out
        (place / "request.http").write_bytes(head + b"\n" + body)
        return "request.http"

    return write


def test_explain_accepts_what_sign_signed_for_a_source(hookonce, written):
    verified = hookonce("explain", written("--source", "stripe"), "--source", "stripe", "--json")

    assert (verified.code, verified.err) == (0, "genuine under secret 1, 1 event\n")
    assert verified.documents[0]["events"][0]["event_id"] == "evt_1"


@pytest.mark.parametrize("provider", ["github", "shopify", "slack", "svix"])
def test_explain_accepts_what_sign_signed_for_a_provider(hookonce, written, monkeypatch, provider):
    monkeypatch.setenv("SECRET", "whsec_bm90IGEgcmVhbCBzZWNyZXQgYXQgYWxsIG5v")
    secret = ("--secret", "env:SECRET")

    assert hookonce("explain", written(provider, *secret), "--provider", provider, *secret).code == 0
    monkeypatch.setenv("SECRET", "whsec_YW5vdGhlciBzZWNyZXQgdGhhdCBpcyBub3QgaXQ=")
    assert hookonce("explain", "request.http", "--provider", provider, *secret).code == 1


@pytest.mark.parametrize("provider", ["docker_hub", "twilio", "hubspot", "mailgun"])
def test_explain_accepts_a_signature_in_url_or_body(hookonce, place, monkeypatch, provider):
    monkeypatch.setenv("SECRET", "not_a_real_secret_at_all")
    secret = ("--secret", "env:SECRET")
    (place / "body.json").write_bytes(BODY)

    signed = hookonce("sign", provider, *secret, "--json", "body.json").documents[0]
    head = [f"POST {signed['url'].removeprefix('http://127.0.0.1:8000')} HTTP/1.1", "host: 127.0.0.1:8000"]
    head += [f"{name}: {value}" for name, value in signed["headers"].items()]
    request = "\r\n".join([*head, "", signed.get("body", BODY.decode())])
    (place / "request.http").write_bytes(request.encode())

    verified = hookonce("explain", "request.http", "--provider", provider, *secret)
    assert (verified.code, verified.err) == (0, "genuine under secret 1, 1 event\n")


def test_sign_says_why_a_body_can_not_be_signed(hookonce, place, monkeypatch):
    monkeypatch.setenv("SECRET", "not_a_real_secret_at_all")
    (place / "body.json").write_bytes(b'{"event": 1}')

    signed = hookonce("sign", "dropbox_sign", "--secret", "env:SECRET", "body.json")

    assert signed.code == 1
    assert "nothing to sign with: the body is not an object whose event" in signed.err


def test_explain_names_the_cause_and_no_secret(hookonce, written):
    explained = hookonce("explain", written("--source", "stripe", body=BODY + b"\n"), "--source", "stripe")

    assert explained.code == 1
    assert "cause    the body was changed on its way: a line end was added at its end" in explained.lines
    assert "whsec_of_the_tests" not in explained.out.decode() + explained.err


def test_explain_is_of_the_time_that_is_named(hookonce, written):
    at = "2026-03-01T12:00Z"
    file = written("--source", "stripe", "--at", at)

    assert hookonce("explain", file, "--source", "stripe").code == 1
    assert (
        hookonce("explain", file, "--source", "stripe", "--at", at, "--json").documents[0]["detail"]
        == "genuine"
    )


def test_sign_makes_a_curl_that_the_shell_reads_as_it_is(hookonce, place):
    (place / "it's.json").write_bytes(BODY)

    made = hookonce(
        "sign",
        "--source",
        "stripe",
        "--curl",
        "--url",
        "https://in.example/hooks/stripe?a=1&b=2",
        "it's.json",
    )
    words = subprocess.run(
        ["bash", "-c", f"set -- {made.lines[0]}; printf '%s\\n' \"$@\""],
        capture_output=True,
        check=True,
        text=True,
    )

    assert words.stdout.splitlines()[:3] == ["curl", "-X", "POST"]
    assert words.stdout.splitlines()[-3:] == [
        "--data-binary",
        "@it's.json",
        "https://in.example/hooks/stripe?a=1&b=2",
    ]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["sign", "body.json"], 2, "expected PROVIDER BODYFILE"),
        (["sign", "stripe", "body.json"], 1, "name it with --secret env:NAME"),
        (["sign", "stripe", "body.json", "--secret", "whsec_pasted"], 78, "secrets are references"),
        (["sign", "stripe", "body.json", "--secret", "env:NO_SUCH"], 78, "set NO_SUCH"),
        (["sign", "strip", "body.json", "--secret", "env:STRIPE_SECRET"], 78, "did you mean 'stripe'?"),
        (["sign", "--source", "strip", "body.json"], 4, "did you mean 'stripe'?"),
        (["explain", "body.json", "--source", "stripe"], 1, "the first line is not a request"),
        (["explain", "body.json"], 2, "name a provider, or a source"),
    ],
)
def test_sign_and_verify_say_what_is_wrong(hookonce, place, arguments, code, said):
    (place / "body.json").write_bytes(BODY)

    failed = hookonce(*arguments)

    assert (failed.code, said in failed.err) == (code, True), failed.err
    assert "whsec_pasted" not in failed.err
