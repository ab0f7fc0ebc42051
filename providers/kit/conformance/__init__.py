"""The contract test: what every provider must do, as plain functions, to be run from any test runner.

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
`states`: whether two states of one object are about one entity, with rising versions
`junk`: bytes that no sender sends
"""

from hookonce.providers.kit.conformance import attacks, junk, probes, promises, unsigned_ids
from hookonce.providers.kit.conformance.cases import Case as Case
from hookonce.providers.kit.conformance.cases import cases as cases
from hookonce.providers.kit.conformance.states import check_states as check_states

CHECKS = (
    promises.check_genuine,
    promises.check_refused,
    promises.check_rotation,
    promises.check_signing,
    promises.check_silence,
    attacks.check_changed_body,
    attacks.check_changed_signature,
    attacks.check_empty_secrets,
    probes.check_handshake,
    unsigned_ids.check_id_is_signed,
    junk.check_junk,
    attacks.check_missing_headers,
    attacks.check_time,
    attacks.check_wrong_secret,
)
