"""What it means that a delivery was refused, and what to do about it: one entry per reason."""

from collections.abc import Mapping

from providers import Reason

ADVICE: Mapping[str, tuple[str, str]] = {
    Reason.MISSING_HEADER: (
        "A header that the sender always sends was not there.",
        (
            "Is this URL configured at the right sender, and does a proxy pass every header on? "
            "Scanners and browsers end here too; those can be left alone."
        ),
    ),
    Reason.BAD_HEADER: (
        "A header that is part of the proof could not be read.",
        "Compare it with what the sender documents. A proxy that joins or rewrites headers is the usual cause.",
    ),
    Reason.BAD_SIGNATURE: (
        "No secret of the source made the signature that came.",
        (
            "Copy the signing secret of this very endpoint again (not an API key, not that of the test mode), and see "
            "that nothing between sender and receiver changes the body. If neither helps, somebody else sent it."
        ),
    ),
    Reason.STALE: (
        "The signed time is too far from this machine's clock.",
        (
            "Compare the clock with the world's (`timedatectl`). If it is right, the delivery was held up for long, or "
            "an old one was sent again."
        ),
    ),
    Reason.BAD_BODY: (
        "The signature may be right, but the body is not what this sender sends.",
        "Look at the beginning below. A proxy that changes bodies, or another API version at the sender, does this.",
    ),
    Reason.NO_SECRET: (
        "The source has no secret, so nothing can be proved.",
        "Set the source's secret and restart the receiver. The sender was told to come again, so nothing is lost.",
    ),
    Reason.UNKNOWN_SOURCE: (
        "No source has the name in the URL.",
        "If it was one of yours, compare the URL at the sender with the Sources page. Most of these are scanners.",
    ),
    Reason.TOO_LARGE: (
        "The body is larger than what is accepted.",
        "If it is genuine, raise max_body in [receiver].",
    ),
    Reason.BAD_METHOD: (
        "Webhooks are delivered by POST.",
        "A browser or a monitor asked. If it was the sender: a redirect before the receiver may make a GET of it.",
    ),
    Reason.UNSUPPORTED_ENCODING: (
        "The body is compressed in a way that is not taken in.",
        "Turn compression off at the sender or the proxy.",
    ),
}
"""Reason → what failed, what to do."""

UNKNOWN = ("It was refused.", "The detail says why.")
