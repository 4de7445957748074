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
MESSAGES_LOST = Entry(
    "E1607",
    "the new program has no `emit`, but undelivered messages are left: {count}",
    "messages belong to the database as long as a rule may emit some",
)
