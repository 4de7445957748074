"""Structured logs: one JSON object per line, on standard error.

    {"time": "…", "level": "info", "event": "request", "method": "POST", "route":
     "/v1/transactions", "status": 200, "milliseconds": 1.7, "caller": "ann", "request_id": "…"}

A request is logged with its route and never with its address: values in addresses are facts.
"""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime
from typing import Any, TextIO

import orjson

LOGGER = logging.getLogger("deltalog.service")
_FIELDS = "fields"


class JsonLines(logging.Formatter):
    """Formats a record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, _FIELDS, {}),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return orjson.dumps(line, default=str).decode()


def log_event(
    event: str, level: int = logging.INFO, exc_info: Any = None, **fields: object
) -> None:
    """Write one line about something that has happened."""
    LOGGER.log(level, event, extra={_FIELDS: fields}, exc_info=exc_info)


def log_to(stream: TextIO | None = None, level: int = logging.INFO) -> None:
    """Let the service and its server log lines of JSON to a stream."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines())
    for name in (LOGGER.name, "uvicorn", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False
        logger.setLevel(level if name == LOGGER.name else max(level, logging.WARNING))
