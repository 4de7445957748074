"""The published conformance tests of Durable Streams servers: their sections about reading pass.

Nobody here wrote them (`@durable-streams/server-conformance-tests` from npm). They write before
they read, which the service does not offer, so they run against a mount that makes commits of what
they write (`writable_mount.py`) and sends each read to the service.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from interop import HAS_NODE, NO_NODE, node_folder
from streaming import serving
from writable_mount import PROGRAM, WritableMount

import deltalog
from deltalog.service.settings import ServiceSettings
from deltalog.service.streams import StreamTimes
from waiting import HANG_SECONDS

SECTIONS = {
    "Read Operations": 3,
    "Long-Poll Operations": 2,
    "HTTP Protocol": 15,
    "Browser Security Headers": 9,
    "Case-Insensitivity": 3,
    "Content-Type Validation": 3,
    "HEAD Metadata": 3,
    "Offset Validation and Resumability": 20,
    "Protocol Edge Cases": 12,
    "Long-Poll Edge Cases": 5,
    "Caching and ETag": 5,
    "Chunking and Large Payloads": 2,
    "Read-Your-Writes Consistency": 3,
    "SSE Mode": 31,
    "JSON Mode": 16,
    "Immutability Properties": 1,
    "Offset Validation Properties": 1,
}
"""The sections that are run, with the number of their tests."""
LONGER = {
    "Byte-Exactness Property": 2,
    "Operation Sequence Properties": 3,
    "State Hash Verification": 4,
}
"""Sections that take long."""
EXCLUDED = {
    "Basic Stream Operations": "creation and deletion of streams",
    "Append Operations": "writing",
    "TTL and Expiry Validation": "streams that expire",
    "TTL and Expiry Edge Cases": "streams that expire",
    "TTL Expiration Behavior": "streams that expire",
    "HEAD Metadata Edge Cases": "streams that expire",
    "Sequence Ordering Properties": "writing",
    "Concurrent Writer Stress Tests": "writing",
    "Idempotent Producer Operations": "writing",
    "Stream Closure": "views do not end",
    "Create with Stream-Closed": "views do not end",
    "Close Operations": "views do not end",
    "HEAD with Stream Closure": "views do not end",
    "Read Closed Streams (Catch-up)": "views do not end",
    "Long-poll with Stream Closure": "views do not end",
    "SSE with Stream Closure": "views do not end",
    "Idempotent Producers with Stream Closure": "writing",
    "Edge Cases": "views do not end",
    "Fork - Creation": "forks",
    "Fork - Reading": "forks",
    "Fork - Appending": "forks",
    "Fork - Recursive": "forks",
    "Fork - Live Modes": "forks",
    "Fork - Deletion and Lifecycle": "forks",
    "Fork - TTL and Expiry": "forks",
    "Fork - JSON Mode": "forks",
    "Fork - Edge Cases": "forks",
    "Reserved subscription APIs": "an option of the protocol",
}
PROPERTIES = "Property-Based Tests (fast-check) "
TIMES = StreamTimes(long_poll=0.4, heartbeat=0.3, connection=5.0)


@pytest.mark.skipif(not HAS_NODE, reason=NO_NODE)
def test_the_published_conformance_tests_pass(tmp_path: Path) -> None:
    folder, report = node_folder(), tmp_path / "report.json"
    shutil.copy(folder / "conformance.mjs", folder / "conformance.test.mjs")  # as vitest wants it
    sections = {**SECTIONS, **(LONGER if os.environ.get("DELTALOG_FUZZ") else {})}
    settings = ServiceSettings(
        port=0, origins=("https://example.com",), requests_per_second=1_000_000
    )
    with serving(
        deltalog.connect(program=PROGRAM, engine="reference"),
        TIMES,
        settings,
        lambda app: app.add_middleware(WritableMount),
    ) as service:
        chosen = "|".join(sections)
        command = [str(folder / "node_modules/.bin/vitest"), "run", "conformance.test.mjs"]
        command += ["--reporter=json", f"--outputFile={report}"]
        command += ["-t", f"^(?:{_escaped(PROPERTIES)})?(?:{chosen}) (?!Edge Cases )"]
        environment = {**os.environ, "CONFORMANCE_TEST_URL": service.address}
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, timeout=HANG_SECONDS
        )
    found = json.loads(report.read_text(encoding="utf-8"))
    tests = [each for file in found["testResults"] for each in file["assertionResults"]]
    wrong = [each["fullName"] for each in tests if each["status"] == "failed"]
    assert not wrong, done.stderr
    assert done.returncode == 0, done.stderr
    counts: dict[str, int] = {}
    for each in tests:
        if each["status"] == "passed":
            counts[each["ancestorTitles"][-1]] = counts.get(each["ancestorTitles"][-1], 0) + 1
    assert counts == sections
    every = {title for each in tests for title in each["ancestorTitles"]} - {PROPERTIES.strip()}
    assert every == {*SECTIONS, *LONGER, *EXCLUDED}, "each section is run, or excluded by name"


def _escaped(text: str) -> str:
    return text.replace("(", r"\(").replace(")", r"\)")
