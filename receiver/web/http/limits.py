"""Every limit of the HTTP front, with where it comes from; docs/reference/http.md shows them to users."""

from datetime import timedelta

HEAD_SIZE = 128 * 1024
"""Bytes of request line and headers together; the longest genuine ones have a few KB."""
EMPTY_LINES = 16
"""Bytes of line ends before a request line; some old clients send one after a body."""
HEADS_SIZE = 16 * 1024 * 1024
"""Bytes of all heads that are not complete; beyond, the longest-waiting of them are hung up on."""

CHUNKS = 16_384
"""Chunks of a body that are always allowed: senders that write JSON token by token make thousands."""
BYTES_A_CHUNK = 64
"""Beyond, the body must have as many bytes for each chunk: one costs about a microsecond, however short it is."""
CHUNK_OVERHEAD = 16 * 1024
"""Bytes of sizes, extensions and trailers, besides `OVERHEAD_A_CHUNK`."""
OVERHEAD_A_CHUNK = 24
"""Bytes: a size of 16 digits and the ends of lines."""
TRAILERS = 100

READ_SIZE = 64 * 1024
"""Bytes taken from the kernel at once."""
HEAD_READ = 36 * 1024
"""The same, of a client whose request has not begun: a head, and a body that is read at once."""
SLICE_SIZE = 4 * 1024
"""Bytes that a parser gets at once, at most: it can't be stopped before the end."""
TLS_READ_SIZE = 32 * 1024
"""Bytes in the TLS object at once: two records."""
HELLO_SIZE = 4 * 1024
"""Bytes of a TLS client's first record that are waited for without working on them; browsers send less than 2 KB."""
WRITE_SIZE = 64 * 1024
"""Bytes of an answer that are encrypted at once."""
STREAMED_SIZE = 64 * 1024
"""Bytes of an answer of unknown length that wait for more of it."""

TURN = 0.0005
"""Seconds that a connection may use without letting others go on."""
ALLOWANCE = 0.0015
"""Seconds of work that a stranger's connection gets before it stands in line."""
ALLOWANCE_A_SECOND = 0.0002
"""How much of it comes back in a second."""
CLIENT_ALLOWANCE = 0.02
"""Seconds of work that all connections of one client get, while other clients are there, before they stand in line."""
CLIENT_ALLOWANCE_A_SECOND = 0.01
"""How much of it comes back in a second."""
EVENT_CREDIT = 0.005
"""Seconds of work that a client gets besides for each delivery that is verified and new."""
MOST_CREDIT = 0.5
"""Seconds."""
RECENT = 1.0
"""Seconds for which there are others after another client has wanted something."""
CLIENTS = 100_000
"""Clients that are remembered at once; some 20 MB."""
REQUEST_COST = 0.0005
"""Seconds that a request is taken to cost, besides its bytes: what it really costs is spread over others' waits."""
REPLAY_COST = 0.0002
"""Seconds that its client is charged for a delivery that is verified and known: it may be sent again and again."""
HANDSHAKE_COST = 0.001
"""Seconds that its client is charged for a TLS handshake, most of them for a signature."""
BYTE_COST = 5e-9
"""Seconds that a body's byte is taken to cost once it is complete: two digests and a look at it."""
RECEIVED_COST = 5e-10
"""Seconds that it costs to receive a byte of a body, which is done before its connection's turn."""
FEW = 64
"""Connections of which each may go on at once, whatever it owes: all of them together hold nobody up for long."""
LARGE_BODY = 64 * 1024
"""Bytes; who has sent more waits for a turn before the body is looked at, which is done in one piece."""
IDLE_ROUND = 0.00005
"""Seconds that the event loop takes to find that it has nothing to do."""
LONGEST_WAIT = 0.01
"""Seconds after which someone in line goes on although the process is never idle."""
LONGEST_HANDSHAKE_WAIT = 0.002
"""The same, while TLS handshakes wait."""
LONGEST_PAUSE = 0.1
"""Seconds that those in line leave to others after one of them has been at work for long."""

REFUSALS_A_SECOND = 100
"""Answers that end a connection against the client's will, in a lasting flood: each brings another connection."""
REFUSALS_AT_ONCE = 100
"""Such answers before they are slowed down."""
LONGEST_REFUSAL = 2.0
"""Seconds that such an answer waits at most."""
GRAVES = 4_000
"""Sockets of connections that had to make room, and are hung up on only later, for the same reason."""
GRAVE_TIME = 2.0
"""Seconds."""

HANDSHAKES = 512
"""TLS handshakes under way at once; one more ends the oldest of the client that has most."""
ACCEPTED_AT_ONCE = 8
"""Connections accepted before others go on."""

HANDSHAKE_TIMEOUT = timedelta(seconds=10)
HEAD_TIMEOUT = timedelta(seconds=15)
"""For a head, from its first byte; for the first of a connection, from its beginning."""
BODY_TIMEOUT = timedelta(seconds=60)
"""For the whole body."""
BODY_RATE = 16 * 1024
"""Bytes a second that a body must come at."""
BODY_LAG = timedelta(seconds=8)
"""How far a body may fall behind that, and how long it may stand still, however quickly it came before."""
ANSWER_TIMEOUT = timedelta(seconds=20)
"""For the client to take the whole of an answer."""
LINGER_TIMEOUT = timedelta(seconds=2)
"""How long we listen to a client that goes on sending after its answer, before we hang up."""
GRACE = timedelta(seconds=4)
"""After so long, heads and bodies must have come at `MINIMUM_RATE`."""
MINIMUM_RATE = 256
"""Bytes a second."""
LOOK = timedelta(seconds=0.5)
"""How often is looked for connections whose time is over."""
LAST_BYTES = timedelta(seconds=1)
"""How long a worker that is to end waits for requests on connections that idle: one may be on its way."""
