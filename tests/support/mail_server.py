"""A server of SMTP (RFC 5321) on this machine that keeps what it is sent, and knows no encryption."""

import socketserver
from email import message_from_bytes, policy


class MailServer(socketserver.ThreadingTCPServer):
    """Takes mails; `refuses` answers their data with that code. `logins` holds what AUTH PLAIN brought."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Session)
        self.mails, self.logins, self.refuses = [], [], None
        self.port = self.server_address[1]


class Session(socketserver.StreamRequestHandler):
    def handle(self):
        self.say("220 test ESMTP")
        while line := self.rfile.readline().decode().strip():
            word, _, rest = line.partition(" ")
            match word.upper():
                case "EHLO":
                    self.say("250-test", "250 AUTH PLAIN")
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
