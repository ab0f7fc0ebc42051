"""A server of SMTP (RFC 5321) on this machine that keeps what it is sent; with a certificate, by TLS or STARTTLS."""

import socketserver
import ssl
import threading
from contextlib import contextmanager, suppress
from email import message_from_bytes, policy


@contextmanager
def served(server):
    """Have a server serve in a thread."""
    with server:
        thread = threading.Thread(target=server.serve_forever, args=[0.01])
        thread.start()
        yield server
        server.shutdown()
        thread.join()


class MailServer(socketserver.ThreadingTCPServer):
    """Takes mails; `refuses` answers their data with that code. `logins` holds what AUTH PLAIN brought.

    With a `context` a session is encrypted from its begin, or after STARTTLS if the server `offers_starttls`.
    """

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, context=None, *, offers_starttls=False):
        super().__init__(("127.0.0.1", 0), Session)
        self.context, self.offers_starttls = context, offers_starttls
        self.mails, self.logins, self.refuses = [], [], None
        self.port = self.server_address[1]


class Session(socketserver.StreamRequestHandler):
    def handle(self):
        with suppress(ssl.SSLError, ConnectionError):  # a client that does not trust the certificate
            if self.server.context and not self.server.offers_starttls:
                self.encrypt()
            self.say("220 test ESMTP")
            self.converse()
        self.request.close()

    def encrypt(self):
        self.request = self.server.context.wrap_socket(self.request, server_side=True)
        self.setup()

    def converse(self):
        while line := self.rfile.readline().decode().strip():
            word, _, rest = line.partition(" ")
            match word.upper():
                case "EHLO":
                    is_open = self.server.offers_starttls and not isinstance(self.request, ssl.SSLSocket)
                    self.say("250-test", "250 STARTTLS" if is_open else "250 AUTH PLAIN")
                case "STARTTLS":
                    self.say("220 go on")
                    self.encrypt()
                case "AUTH":
                    self.server.logins.append(rest)
                    self.say("235 yes")
                case "DATA":
                    self.say("354 go on")
                    self.take()
                case "QUIT":
                    self.say("221 bye")
                    return
                case _:
                    self.say("250 ok")

    def take(self):
        lines = []
        while (line := self.rfile.readline()) != b".\r\n":
            lines.append(line.removeprefix(b"."))
        if self.server.refuses:
            self.say(f"{self.server.refuses} no")
            return
        self.server.mails.append(message_from_bytes(b"".join(lines), policy=policy.default))
        self.say("250 taken")

    def say(self, *lines):
        self.wfile.write("".join(f"{line}\r\n" for line in lines).encode())
