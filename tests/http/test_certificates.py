"""A certificate that was renewed is served after a reload, and no connection is refused for it."""

import os
import signal
import ssl

from tests.http.conftest import serving
from tests.support.attacks import certificate
from tests.support.waiting import until


def served(port):
    return ssl.get_server_certificate(("127.0.0.1", port), timeout=10)


def test_renewed_certificate_is_served_after_a_reload(tmp_path, fresh_database, fresh_redis):
    options, context = certificate.made(tmp_path)
    with (
        fresh_database() as database_url,
        fresh_redis() as redis_url,
        serving(tmp_path, database_url, redis_url, options=options, context=context) as server,
    ):
        before = served(server.port)
        certificate.made(tmp_path)
        assert served(server.port) == before

        os.kill(server.process.pid, signal.SIGHUP)

        until(lambda: served(server.port) != before, what="the renewed certificate", away=OSError)
