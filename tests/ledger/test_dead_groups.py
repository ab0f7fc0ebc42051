import pytest

from hookonce.receiver.ledger.queries.dead_groups import pattern_of


@pytest.mark.parametrize(
    ("error", "pattern"),
    [
        ("ValueError: no such customer: cus_NffrFeUfNV2Hib", "ValueError: no such customer: *"),
        ("took 31 s", "took * s*"),
        ("KeyError: 'amount'\nTraceback", "KeyError: 'amount'*"),
        ("id 7f9c24e5-1a2b-4c3d-8e9f-0123456789ab gone", "id * gone*"),
        ("sha 0123456789abcdef0123 at 0xffff", "sha * at *"),
        ("snake_case_name stays", "snake_case_name stays*"),
        ("", "*"),
    ],
)
def test_pattern_leaves_out_what_varies_within_a_cause(error, pattern):
    assert pattern_of(error) == pattern
