"""Everything a provider module is made of; standard library and cryptography only, no clock, no sockets.

`Hmac`, `StandardWebhooks` and `Token` are schemes (verify, sign, check_secret); `one_event` and `many_events`
say where the events are; `header`, `field`, `query`, `first`, `digest` … say where a value is;
`docs/adding-a-provider.md` shows it.
"""

from providers.kit.events import either, many_events, one_event, split_events
from providers.kit.fields import (
    Pick,
    View,
    body_digest,
    data_digest,
    digest,
    field,
    first,
    fixed,
    header,
    joined,
    position,
    query,
    whole,
)
from providers.kit.fingerprint import fingerprint
from providers.kit.hmacs import Hmac
from providers.kit.pieces import cut
from providers.kit.reading import (
    any_body,
    any_body_or_none,
    form_body,
    form_field,
    is_form,
    json_body,
    json_in_form,
    parse_form,
    parse_json,
    text_of,
)
from providers.kit.signing import FORGED, FORM, Said, Sign, headers_of, made_id, signer
from providers.kit.standard import StandardWebhooks
from providers.kit.times import Timestamp, instant
from providers.kit.token import Token

__all__ = [
    "FORGED",
    "FORM",
    "Hmac",
    "Pick",
    "Said",
    "Sign",
    "StandardWebhooks",
    "Timestamp",
    "Token",
    "View",
    "any_body",
    "any_body_or_none",
    "body_digest",
    "cut",
    "data_digest",
    "digest",
    "either",
    "field",
    "fingerprint",
    "first",
    "fixed",
    "form_body",
    "form_field",
    "header",
    "headers_of",
    "instant",
    "is_form",
    "joined",
    "json_body",
    "json_in_form",
    "made_id",
    "many_events",
    "one_event",
    "parse_form",
    "parse_json",
    "position",
    "query",
    "signer",
    "split_events",
    "text_of",
    "whole",
]
