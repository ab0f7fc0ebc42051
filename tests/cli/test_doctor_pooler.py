"""A pooler that gives each transaction another session is found, where the URL does not say that there is one."""

import pytest

from hookonce.receiver.cli.doctor.servers import postgresql
from tests.support.pooler import PGBOUNCER, pooling

pytestmark = pytest.mark.skipif(PGBOUNCER is None, reason="pgbouncer is not installed")
POOLED = "&pgbouncer=true"


def poolers(url):
    return [finding for finding in postgresql(url) if finding.check in {"pooler", "postgresql"}]


@pytest.mark.parametrize("size", [1, 2, 3])
def test_doctor_warns_of_a_pooler_by_transactions_that_the_url_does_not_name(
    database_url, data_directory, size
):
    with pooling(database_url, data_directory, size=size) as url:
        version, found = poolers(url.removesuffix(POOLED))
        named = poolers(url)

    assert (version.level, found.level, found.check) == ("ok", "warn", "pooler")
    assert "?pgbouncer=true" in found.text
    assert named == [version]


def test_doctor_says_nothing_of_a_pooler_by_sessions(database_url, data_directory):
    with pooling(database_url, data_directory, mode="session") as url:
        found = poolers(url.removesuffix(POOLED))

    assert [(each.level, each.check) for each in found] == [("ok", "postgresql")]


def test_doctor_says_nothing_of_a_server_without_a_pooler(database_url):
    assert [each.check for each in poolers(database_url)] == ["postgresql"]


def test_pooler_that_takes_no_settings_is_told_from_a_server_that_is_away(database_url, data_directory):
    with pooling(database_url, data_directory, ignored="extra_float_digits") as url:
        (found,) = poolers(url.removesuffix(POOLED))

    assert (found.level, "?pgbouncer=true" in found.text) == ("fail", True)
