"""A program that asks senders on loopback by a fast clock until it is killed: `python -m tests.support.asking JSON`."""

import json
import sys
import time
from datetime import UTC, datetime, timedelta

from hookonce.receiver.config.settings import load_settings
from hookonce.receiver.intake.sender_api.rounds import Rounds
from hookonce.receiver.ledger.database import connections
from tests.support.fake_senders import means_of


class FastClock:
    """A clock on which a second is many; processes that are told the same begin agree."""

    def __init__(self, begin, now, speed):
        self._begin, self._now, self._speed = begin, datetime.fromtimestamp(now, UTC), speed

    def __call__(self):
        return self._now + timedelta(seconds=(time.time() - self._begin) * self._speed)

    def sleep(self, seconds):
        time.sleep(seconds / self._speed)


def main(told):
    clock = FastClock(told["begin"], told["now"], told["speed"])
    settings = load_settings(told["environ"], need_secrets=False)
    rounds = Rounds(settings, means_of(told["ports"], clock, told["environ"]), timedelta(seconds=1))
    with connections.connect(settings.database_url) as connection:
        while True:
            rounds.turn(connection)
            time.sleep(0.02)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
