"""The errors that only the service has; `catalogue.py` has all others, and `ENTRIES` both."""

from __future__ import annotations

from deltalog.diagnostics.entry import Entry

# Dispatching messages
DISPATCH_NEEDS = Entry("E1601", "delivery over HTTP needs the package `{needed}`")
DISPATCHER_AT_WORK = Entry(
    "E1602",
    "another dispatcher delivers the messages of `{name}`",
    "messages are in order only if one at a time does",
)
BAD_TARGET = Entry("E1603", "{place}: {reason}")
NO_SECRET = Entry(
    "E1604",
    "the environment variable `{variable}` has no secret for the target `{target}`",
    "a secret is `whsec_` and 24 to 64 bytes in base64; several, with a space between, all sign",
)
TOO_MANY_MESSAGES = Entry(
    "E1605",
    "more messages are undelivered than a dump can have: {limit:,}",
    "a backup has all of them",
)
NO_SUCH_RECIPIENT = Entry("E1606", "no messages have been delivered to a target `{name}`")
STATE_NOT_DISPATCHED = Entry(
    "E1608", "the messages of the state `{name}` cannot be delivered from here: {reason}"
)
MESSAGES_LOST = Entry(
    "E1607",
    "the new program has no `emit`, but undelivered messages are left: {count}",
    "messages belong to the database as long as a rule may emit some",
)
# Requests and trust
UNAUTHENTICATED = Entry("E1720", "a valid token is needed: {reason}")
FORBIDDEN = Entry("E1721", "this token may not {act}")
BAD_REQUEST = Entry("E1722", "the request does not fit: {reason}")
NOT_FOUND = Entry("E1723", "there is no {what} `{name}`")
KEY_REUSED = Entry(
    "E1724",
    "the idempotency key `{key}` was used for another transaction",
    "a key identifies one transaction, which is applied once",
)
BODY_TOO_LARGE = Entry("E1725", "the body has more than {limit:,} bytes")
TOO_MANY_REQUESTS = Entry("E1726", "more than {limit:g} requests per second")
FOREIGN_ORIGIN = Entry("E1727", "pages of `{origin}` may not use this service")
FOREIGN_HOST = Entry(
    "E1728",
    "this service is not called `{host}`",
    "a service on loopback answers to names of this machine only, so that no web page can reach it",
)
NEEDS_TOKENS = Entry(
    "E1729", "serving on `{host}` needs tokens: other machines can reach that address"
)
BAD_GRANT = Entry("E1730", "`{text}` is not a grant: {reason}")
NO_SUCH_TOKEN = Entry("E1731", "there is no token `{name}`")
STOPPING = Entry("E1732", "the service is being stopped", "what was acknowledged is kept")
BAD_TOKENS = Entry("E1733", "the tokens in `{name}` cannot be read: {reason}")
WRONG_METHOD = Entry("E1734", "`{method}` is not a method of this address")
NO_SUCH_ROLE = Entry("E1735", "there is no role `{name}`")
CANNOT_LISTEN = Entry("E1736", "cannot listen on `{host}`, port {port}: {reason}")

# Clients
UNREACHABLE = Entry("E1740", "the service at `{address}` did not answer: {reason}")
REFUSED = Entry("E1741", "the service refused with status {status}: {detail}")
FOREIGN_COPY = Entry(
    "E1742",
    "the copy in `{name}` is one of `{found}`, not of `{wanted}`",
    "a file holds the copy of one view with one set of bindings",
)
BAD_COPY = Entry("E1743", "the copy in `{name}` cannot be used: {reason}")
ROW_MISFIT = Entry("E1744", "rows of `{view}` cannot become `{name}`: {reason}")
BAD_STREAM = Entry("E1745", "the stream of `{view}` is not understood: {reason}")
# Streams and subscriptions
MALFORMED_OFFSET = Entry("E1701", "`{text}` is not an offset")
OFFSET_EXPIRED = Entry(
    "E1702",
    "the stream cannot go on behind `{offset}`: {reason}",
    "a read from offset -1 gives the whole answer of now",
)
BAD_READ = Entry("E1703", "the stream cannot be read like this: {reason}")
NOT_REACHED = Entry("E1704", "offset `{offset}` was not reached within {seconds:g} seconds")
TOO_MANY_STREAMS = Entry("E1705", "there are {limit:,} subscriptions already")
NO_SUCH_SUBSCRIPTION = Entry("E1706", "there is no subscription `{name}`")
SUBSCRIPTION_DIFFERS = Entry("E1707", "the subscription `{name}` is about something else")
FENCED = Entry(
    "E1708",
    "generation {generation} of the subscription `{name}` is fenced off: {reason}",
    "whoever claims a subscription begins a new generation, and fences all earlier ones off",
)
SUBSCRIPTION_LOST = Entry("E1709", "the subscription `{name}` has lost its place: {reason}")
STATE_ONLY_READ = Entry(
    "E1760",
    "{what} would change the state `{name}`, which is only read here",
    "a state in tables is changed by Spark, by one process at a time",
)
TOO_LARGE_TO_LOAD = Entry(
    "E1761", "`{name}` has {size} facts, and at most {limit} are loaded for a query"
)
STATE_NOT_KEPT = Entry("E1762", "nothing can be kept about the state `{name}`: {reason}")
QUERY_NAME_TAKEN = Entry("E1763", "there is a relation `{name}`, so no query can be stored by it")
TOO_MANY_QUERIES = Entry("E1764", "there are {limit:,} stored queries already")
