"""What every provider must do, as plain functions: run them on your own from any test runner.

    from hookonce.providers.kit.conformance import CHECKS, cases

    @pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
    @pytest.mark.parametrize("case", cases("tests/providers/acme", places=["acme_providers"]), ids=str)
    def test_provider_keeps_the_contract(case, check):
        check(case)

A check raises AssertionError saying what the provider did and should have done, and passes over cases that it
has nothing to say about.

`cases`: a captured delivery in a file, and the questions that are put to a provider
`promises`: what it does for deliveries that are what they seem
`attacks`: what others may try
`equal_bytes`: whether two events are two, and a retry is none
`other_events`: makes another event of a delivery
`unsigned_ids`: whether the event id is covered by what is signed
`repeats`: whether what comes again with a signature is known for a repeat
`probes`: who gets an answer to a probe
`junk`: bytes that no sender sends
"""

from hookonce.providers.kit.conformance.attacks import (
    check_changed_body,
    check_changed_signature,
    check_empty_secrets,
    check_missing_headers,
    check_time,
    check_wrong_secret,
)
from hookonce.providers.kit.conformance.cases import Case, cases
from hookonce.providers.kit.conformance.equal_bytes import check_equal_bytes
from hookonce.providers.kit.conformance.junk import check_junk
from hookonce.providers.kit.conformance.probes import check_handshake
from hookonce.providers.kit.conformance.promises import (
    check_genuine,
    check_refused,
    check_rotation,
    check_signing,
    check_silence,
)
from hookonce.providers.kit.conformance.repeats import check_repeats
from hookonce.providers.kit.conformance.unsigned_ids import check_id_is_signed

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
    check_id_is_signed,
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
    "check_equal_bytes",
    "check_genuine",
    "check_handshake",
    "check_id_is_signed",
    "check_junk",
    "check_missing_headers",
    "check_refused",
    "check_repeats",
    "check_rotation",
    "check_signing",
    "check_silence",
    "check_time",
    "check_wrong_secret",
]
