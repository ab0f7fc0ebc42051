"""Everything a provider module is made of; standard library and cryptography only, no clock, no sockets.

Hmac, StandardWebhooks and Token are schemes (verify, sign, check_secret); one_event and many_events say where the
events are; header, field, query, first, digest … say where a value is; Sender is what else is declared.
docs/adding-a-provider.md shows it. In the order in which one builds on the other:

`reading`: takes bodies apart
`crypto`: keys, and the spelling of signatures
`signing`: what is signed, and when
`events`: where ids and types are
`schemes`: ways to sign
`sender`: what a module declares
`handshakes`: probes of the URL, and what may be answered to anybody
`http_file`: a captured request as a file
`provider`: a module as the receiver uses it, checked when it is loaded
`registry`: finds and loads it
`conformance`: tries to break it

Senders import from here alone, but for what few of them need and what would slow all others down: keys and
certificates (crypto.public_keys, certificates, jws and encrypted_body, and the schemes that use them: their half of
the library takes as long to import as all of this), XML, and the options of a source (their package finds providers).
"""

from hookonce.providers.kit.crypto.fetched_keys import Documents, fetched, owner_of, owners_of
from hookonce.providers.kit.crypto.secret_keys import CODECS, as_whsec, key_of, keys_of
from hookonce.providers.kit.crypto.signature_text import speller
from hookonce.providers.kit.events.declare import (
    UNREADABLE,
    Attempts,
    many_events,
    one_event,
    one_of_two,
    split_events,
)
from hookonce.providers.kit.events.fields import (
    EventView,
    Extractor,
    body_digest,
    data_digest,
    digest,
    field,
    first,
    fixed,
    header,
    join,
    position,
    query,
    scoped,
    when_matches,
    whole,
)
from hookonce.providers.kit.events.fingerprint import fingerprint
from hookonce.providers.kit.events.identity import told_apart_by
from hookonce.providers.kit.events.split import cut
from hookonce.providers.kit.handshakes import (
    answer_head,
    authentic_body,
    echo,
    echo_header,
    json_reply,
    proof,
    query_parameter,
    same_challenge,
    subscribed,
    unsigned_probe,
)
from hookonce.providers.kit.reading import json_paths, multipart
from hookonce.providers.kit.reading.bodies import (
    any_body,
    any_body_or_none,
    form_body,
    form_field,
    form_pairs,
    header_of,
    is_form,
    json_body,
    json_in_form,
    json_or_form,
    no_longer_than,
    octets,
    parse_form,
    parse_json,
    read_once,
    text_of,
)
from hookonce.providers.kit.schemes import path_secret
from hookonce.providers.kit.schemes.hmac_signature import Hmac
from hookonce.providers.kit.schemes.keyed_digest import KeyedDigest
from hookonce.providers.kit.schemes.shared_token import Token
from hookonce.providers.kit.schemes.standard_webhooks import StandardWebhooks
from hookonce.providers.kit.sender import FAILURES, NEVER, SERVER_ERRORS, UNSUCCESSFUL, Configured, Sender
from hookonce.providers.kit.signing import canonical_request, header_lists, signature_in_body
from hookonce.providers.kit.signing.composite_secrets import (
    all_parts_of,
    checker,
    checker_of_either,
    parts_of,
    parts_or_none,
    secrets_for,
)
from hookonce.providers.kit.signing.signature_in_body import as_form, as_json, json_or_empty
from hookonce.providers.kit.signing.signed_urls import (
    expect_hash,
    query_as_form,
    url_parameter,
    verify_at_any_port,
    with_and_without_port,
    with_parameter,
)
from hookonce.providers.kit.signing.timestamps import Timestamp, instant
from hookonce.providers.kit.signing.verdict import (
    FORGED,
    FORM,
    MAX_EVENTS,
    MAX_SIGNATURES,
    Sign,
    SignOptions,
    delivering,
    expect_match,
    headers_of,
    made_id,
    signer,
)

__all__ = [
    "CODECS",
    "FAILURES",
    "FORGED",
    "FORM",
    "MAX_EVENTS",
    "MAX_SIGNATURES",
    "NEVER",
    "SERVER_ERRORS",
    "UNREADABLE",
    "UNSUCCESSFUL",
    "Attempts",
    "Configured",
    "Documents",
    "EventView",
    "Extractor",
    "Hmac",
    "KeyedDigest",
    "Sender",
    "Sign",
    "SignOptions",
    "StandardWebhooks",
    "Timestamp",
    "Token",
    "all_parts_of",
    "answer_head",
    "any_body",
    "any_body_or_none",
    "as_form",
    "as_json",
    "as_whsec",
    "authentic_body",
    "body_digest",
    "canonical_request",
    "checker",
    "checker_of_either",
    "cut",
    "data_digest",
    "delivering",
    "digest",
    "echo",
    "echo_header",
    "expect_hash",
    "expect_match",
    "fetched",
    "field",
    "fingerprint",
    "first",
    "fixed",
    "form_body",
    "form_field",
    "form_pairs",
    "header",
    "header_lists",
    "header_of",
    "headers_of",
    "instant",
    "is_form",
    "join",
    "json_body",
    "json_in_form",
    "json_or_empty",
    "json_or_form",
    "json_paths",
    "json_reply",
    "key_of",
    "keys_of",
    "made_id",
    "many_events",
    "multipart",
    "no_longer_than",
    "octets",
    "one_event",
    "one_of_two",
    "owner_of",
    "owners_of",
    "parse_form",
    "parse_json",
    "parts_of",
    "parts_or_none",
    "path_secret",
    "position",
    "proof",
    "query",
    "query_as_form",
    "query_parameter",
    "read_once",
    "same_challenge",
    "scoped",
    "secrets_for",
    "signature_in_body",
    "signer",
    "speller",
    "split_events",
    "subscribed",
    "text_of",
    "told_apart_by",
    "unsigned_probe",
    "url_parameter",
    "verify_at_any_port",
    "when_matches",
    "whole",
    "with_and_without_port",
    "with_parameter",
]
