"""WeChat Pay (API v3) signs three lines, time, nonce and body, with RSA (SHA-256), in base64, and encrypts the event.

The secret is two in one, `<APIv3 key>:<public key of WeChat Pay>`: the second, in PEM, verifies; the first, of 32
characters, decrypts `$.resource` (AES-GCM) once that is done, and so it is stored. An account with platform
certificates instead of a public key names one secret for each certificate's key. The id is `$.id`, the same on every
attempt, and the type `$.event_type`. There are up to fifteen attempts within a day and some hours. What begins with
`WECHATPAY/SIGNTEST/` is signed wrongly on purpose, to see whether it is refused.

https://pay.weixin.qq.com/doc/v3/merchant/4012071382
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Unpack

from hookonce.providers import Delivery, kit

_PARTS = ("api_v3_key", "public_key")
scheme = kit.Signed(
    header="wechatpay-signature",
    algorithm="rsa-sha256",
    signed="{timestamp}\n{header:wechatpay-nonce}\n{body}\n",
    timestamp=kit.Timestamp(header="wechatpay-timestamp"),
)
events = kit.one_event(
    id="$.id",
    type="$.event_type",
    account=kit.first("$.resource.mchid", "$.resource.sp_mchid"),
    occurred_at="$.create_time",
)


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` if WeChat Pay signed it. Raises: Rejected."""
    scheme.verify(delivery, [key for _, key in kit.all_parts_of(secrets, *_PARTS)], now)


def sign(body: bytes, secret: str, now: datetime, **options: Unpack[kit.SignOptions]) -> dict[str, str]:
    """Return the headers, for a body that is not encrypted. Raises: ValueError unless there is a private key."""
    _, key = kit.parts_of(secret, *_PARTS)
    kinds = {
        "content-type": "application/json",
        "wechatpay-signature-type": "WECHATPAY2-SHA256-RSA2048",
        "wechatpay-serial": "PUB_KEY_ID_0100000000000000000000000000000000",
        "wechatpay-nonce": kit.made_id(body).replace("-", ""),
    }
    told: kit.SignOptions = {**options, "headers": {**kinds, **options.get("headers", {})}}
    return {**kinds, **scheme.sign(body, key, now, **told)}


def decode(delivery: Delivery, secrets: Sequence[str]) -> Delivery:
    """`delivery` with its resource decrypted; as it is, if no secret opens it."""
    known = [parts for secret in secrets if (parts := kit.parts_or_none(secret, *_PARTS))]
    return kit.encrypted_body.decrypt_resource(delivery, [key for key, _ in known])


def check_secret(secret: str) -> None:
    """Raises: ValueError with what a right secret looks like."""
    key, public = kit.parts_of(secret, *_PARTS)
    if len(key) != kit.encrypted_body.RESOURCE_KEY:
        msg = "the secret is not usable; expected the APIv3 key of 32 characters before the first colon"
        raise ValueError(msg)
    scheme.check_secret(public)


sender = kit.Sender(
    scheme=scheme,
    id_is_signed=True,
    body_is_unsigned=False,
    retry_horizon=kit.days(2),
    retries_on=kit.UNSUCCESSFUL,
    identity=kit.told_apart_by("$.id"),
    tolerance=scheme.tolerance,
    setup_url="https://pay.weixin.qq.com/index.php/core/account/api_cert",
)
