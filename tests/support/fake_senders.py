"""Senders' APIs as servers on loopback, each made from what its vendor publishes; tests say what goes wrong."""

import json
import threading
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from hookonce.providers.kit.calls import CallFailed, Request
from hookonce.receiver.intake.sender_api.client import Means
from hookonce.receiver.outbound.api_calls import exchange


class Clock:
    """The time of a test: whoever waits moves it on."""

    def __init__(self, now=None):
        self.now = now or datetime.now(UTC).replace(microsecond=0)

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        self.now += timedelta(seconds=seconds)


class Server:
    """What all have in common: a server, the requests that came, and answers that are to come first."""

    hosts = ()

    def __init__(self, clock):
        self.clock = clock
        self.requests = []
        self.next_answers = []
        self.hours = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self):
                length = int(self.headers.get("content-length") or 0)
                body = self.rfile.read(length)
                outer.hours.append(clock().replace(minute=0, second=0, microsecond=0))
                outer.requests.append((self.command, self.path, dict(self.headers), body))
                if outer.next_answers:
                    status, headers, answer, *cut = outer.next_answers.pop(0)
                else:
                    cut = []
                    status, headers, answer = outer.answer(self.command, self.path, body)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer[: len(answer) // 2] if cut else answer)
                if cut:
                    self.close_connection = True

            do_GET = do_POST = do_PATCH = do_DELETE = handle_any  # noqa: N815  the library's names

            def log_message(self, *_):
                pass

        class Listener(ThreadingHTTPServer):
            def handle_error(self, *_):
                """Say nothing: clients are killed."""

        self._server = Listener(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=[0.01], daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()

    @property
    def calls(self):
        return [(method, path) for method, path, *_ in self.requests]


def json_of(document, status=200, headers=()):
    return status, {"content-type": "application/json", **dict(headers)}, json.dumps(document).encode()


def means_of(ports, clock, environ):
    """How a client reaches the servers on these ports: by real HTTP, at its sender's own hosts otherwise."""

    def call(request, hosts):
        target = urlsplit(request.url)
        if target.scheme != "https" or target.netloc not in hosts or target.netloc not in ports:
            raise CallFailed("the address is not its sender's; nothing was sent")
        there = target._replace(scheme="http", netloc=f"127.0.0.1:{ports[target.netloc]}").geturl()
        return exchange(Request(request.method, there, request.headers, request.body))

    return Means(call, clock, clock.sleep, environ)


class GitHub(Server):
    """Deliveries of a hook, as of https://docs.github.com/en/rest/repos/webhooks: the newest first, by cursor."""

    host = "api.github.com"

    def __init__(self, clock, door=None, lag=timedelta(minutes=1), page=100):
        super().__init__(clock)
        self.door = door
        self.lag = lag
        self.page = page
        self.deliveries = []
        self.redelivered = []

    def add(self, guid, at, *, status=502, event="issues", redelivery=False):
        """Note a delivery, with the fields that the vendor's example has."""
        self.deliveries.append(
            {
                "id": 12345678000 + len(self.deliveries),
                "guid": guid,
                "delivered_at": f"{at:%Y-%m-%dT%H:%M:%SZ}",
                "redelivery": redelivery,
                "duration": 0.27,
                "status": "OK" if status == 200 else "failed to connect",
                "status_code": status,
                "event": event,
                "action": "opened",
                "installation_id": 123,
                "repository_id": 123,
                "throttled_at": None,
            }
        )

    def answer(self, method, path, _):
        target = urlsplit(path)
        if method == "POST":
            number = int(target.path.split("/")[-2])
            found = next((each for each in self.deliveries if each["id"] == number), None)
            if found is None:
                return json_of({"message": "Not Found"}, 404)
            self.redelivered.append(found["guid"])
            status = self.door(found["guid"]) if self.door else 502
            self.add(found["guid"], self.clock(), status=status, redelivery=True)
            return json_of({}, 202)
        asked = parse_qs(target.query)
        listed = [
            each
            for each in reversed(self.deliveries)
            if datetime.fromisoformat(each["delivered_at"]) <= self.clock() - self.lag
        ]
        if "cursor" in asked:
            listed = [each for each in listed if each["id"] <= int(asked["cursor"][0].removeprefix("v1_"))]
        page, rest = listed[: self.page], listed[self.page :]
        url = (
            f"https://api.github.com{target.path}?per_page={self.page}&cursor=v1_{rest[0]['id']}"
            if rest
            else ""
        )
        return json_of(page, headers={"link": f'<{url}>; rel="next"'} if rest else {})


class Stripe(Server):
    """Events that were not delivered, as of https://docs.stripe.com/webhooks/process-undelivered-events."""

    host = "api.stripe.com"

    def __init__(self, clock, lag=timedelta(minutes=1)):
        super().__init__(clock)
        self.lag = lag
        self.events = []

    def add(self, event):
        self.events.append(event)

    def deliver(self, name):
        """Have an event be delivered: it leaves the list."""
        self.events = [each for each in self.events if each["id"] != name]

    def answer(self, method, path, _):  # noqa: ARG002
        asked = {name: values[0] for name, values in parse_qs(urlsplit(path).query).items()}
        assert asked["delivery_success"] == "false"
        listed = [
            each
            for each in sorted(self.events, key=lambda each: (each["created"], each["id"]), reverse=True)
            if int(asked["created[gte]"]) <= each["created"] <= (self.clock() - self.lag).timestamp()
        ]
        if "starting_after" in asked:
            names = [each["id"] for each in listed]
            listed = listed[names.index(asked["starting_after"]) + 1 :]
        limit = int(asked["limit"])
        page = {
            "object": "list",
            "url": "/v1/events",
            "has_more": len(listed) > limit,
            "data": listed[:limit],
        }
        return json_of(page)


class Graph(Server):
    """Subscriptions, as of https://learn.microsoft.com/en-us/graph/api/subscription-post-subscriptions."""

    host = "graph.microsoft.com"

    def __init__(self, clock):
        super().__init__(clock)
        self.subscriptions = {}
        self.made = 0

    def living(self):
        return {
            name: each
            for name, each in self.subscriptions.items()
            if datetime.fromisoformat(each["expirationDateTime"]) > self.clock()
        }

    def answer(self, method, path, body):
        if "/oauth2/" in path:
            return json_of(
                {"token_type": "Bearer", "expires_in": 3599, "access_token": "eyJ0eXAiOiJKV1QiLCJhbGci"}
            )
        asked = json.loads(body)
        if method == "POST":
            self.made += 1
            name = f"7f105c7d-2dc5-4530-97cd-{self.made:012}"
            self.subscriptions[name] = {
                "@odata.context": "…/$metadata#subscriptions/$entity",
                "id": name,
                **asked,
            }
            return json_of(self.subscriptions[name], 201)
        name = path.rsplit("/", 1)[1]
        if name not in self.living():
            return json_of(
                {"error": {"code": "ResourceNotFound", "message": "The object was not found."}}, 404
            )
        self.subscriptions[name] |= asked
        return json_of(self.subscriptions[name])


class Google(Server):
    """Channels, as of https://developers.google.com/workspace/calendar/api/guides/push."""

    host = "www.googleapis.com"

    def __init__(self, clock):
        super().__init__(clock)
        self.channels = {}

    def answer(self, method, path, body):  # noqa: ARG002
        asked = json.loads(body)
        if path.endswith("/channels/stop"):
            self.channels.pop(asked["id"], None)
            return 204, {}, b""
        self.channels[asked["id"]] = asked
        made = {
            "kind": "api#channel",
            "id": asked["id"],
            "resourceId": "o3hgv1538sdjfh",
            "resourceUri": f"https://www.googleapis.com{path.removesuffix('/watch')}",
            "token": asked["token"],
            "expiration": str(asked["expiration"]),
        }
        return json_of(made)
