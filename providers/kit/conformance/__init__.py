"""What every provider must do, as plain functions: run them on your own from any test runner.

    from providers.kit.conformance import CHECKS, cases

    @pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
    @pytest.mark.parametrize("case", cases("tests/providers/acme", places=["acme_providers"]), ids=str)
    def test_provider_keeps_the_contract(case, check):
        check(case)

A check raises AssertionError saying what the provider did and should have done, and passes over cases that it
has nothing to say about. A case is a captured delivery in a JSON file (`providers.kit.conformance.cases`).
"""

from providers.kit.conformance.attacks import (
    check_changed_body,
    check_changed_signature,
    check_empty_secrets,
    check_missing_headers,
    check_time,
    check_wrong_secret,
)
from providers.kit.conformance.cases import Case, cases
from providers.kit.conformance.junk import check_junk
from providers.kit.conformance.probes import check_handshake
from providers.kit.conformance.promises import (
    check_genuine,
    check_refused,
    check_rotation,
    check_signing,
    check_silence,
)

CHECKS = (
    check_genuine,
    check_refused,
    check_rotation,
    check_signing,
    check_silence,
    check_changed_body,
    check_changed_signature,
    check_empty_secrets,
    check_handshake,
    check_junk,
    check_missing_headers,
    check_time,
    check_wrong_secret,
)

__all__ = [
    "CHECKS",
    "Case",
    "cases",
    "check_changed_body",
    "check_changed_signature",
    "check_empty_secrets",
    "check_genuine",
    "check_handshake",
    "check_junk",
    "check_missing_headers",
    "check_refused",
    "check_rotation",
    "check_signing",
    "check_silence",
    "check_time",
    "check_wrong_secret",
]
