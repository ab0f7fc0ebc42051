"""Everything a provider module is made of; standard library and cryptography only, no clock, no sockets.

Hmac, StandardWebhooks and Token are schemes (verify, sign, check_secret); one_event and many_events say where the
events are; header, field, query, first, digest … say where a value is; Sender is what else is declared.
docs/reference/declarations.md shows it. In the order in which one builds on the other:

`reading`: takes bodies apart
`crypto`: keys, and the spelling of signatures
`signing`: what is signed, and when
`events`: where ids and types are
`schemes`: ways to sign
`calls`: calls of a sender's API, as values
`sender`: what a module declares
`handshakes`: probes of the URL, and what may be answered to anybody
`http_file`: a captured request as a file
`provider`: a module as the receiver uses it, checked when it is loaded
`registry`: finds and loads it
`conformance`: tries to break it

Senders import nothing else: `from hookonce.providers import kit`. What few of them need (public keys, certificates and
tokens: their half of the library takes as long to import as all the rest) is imported when it is first named.
"""

# mypy: implicit-reexport

from typing import TYPE_CHECKING

from hookonce import late_names
from hookonce.providers.kit import calls
from hookonce.providers.kit.crypto.fetched_keys import Documents, fetched, owner_of, owners_of
from hookonce.providers.kit.crypto.secret_keys import CODECS, as_whsec, key_of, keys_of
from hookonce.providers.kit.crypto.signature_text import speller
from hookonce.providers.kit.events.declare import (
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
    mode,
    or_body,
    or_unknown,
    position,
    query,
    scoped,
    when_matches,
    whole,
)
from hookonce.providers.kit.events.fingerprint import fingerprint
from hookonce.providers.kit.events.identity import told_apart_by
from hookonce.providers.kit.events.split import cut
from hookonce.providers.kit.events.subjects import about, about_each
from hookonce.providers.kit.handshakes import (
    answer_head,
    authentic_body,
    echo,
    hands_out_a_secret,
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
from hookonce.providers.kit.sender import (
    FAILURES,
    NEVER,
    SERVER_ERRORS,
    UNSUCCESSFUL,
    Configured,
    Sender,
    days,
    hours,
    minutes,
    seconds,
)
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
    expect_match,
    headers_of,
    made_id,
    signer,
)

if TYPE_CHECKING:
    from hookonce.providers.kit.crypto import certificates, encrypted_body, jws, public_keys
    from hookonce.providers.kit.reading import xml_body
    from hookonce.providers.kit.registry import declared_options, key_pair_options
    from hookonce.providers.kit.registry.challenge_option import challenge
    from hookonce.providers.kit.registry.options import Options, with_options
    from hookonce.providers.kit.registry.token_sender import by_token, token_sender
    from hookonce.providers.kit.schemes import http_message_signature, sns
    from hookonce.providers.kit.schemes.google_oidc import Oidc
    from hookonce.providers.kit.schemes.jwt import Jwt, claim
    from hookonce.providers.kit.schemes.public_key_signature import Signed
else:
    __getattr__ = late_names.getter(__name__)
