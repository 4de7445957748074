"""A receiver of webhooks: verifies what comes, prints it, and ends after so many messages.

    python receiver.py URL_FILE COUNT

It listens on a free port of this machine and writes its address to a file.
"""

from __future__ import annotations

import os
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from standardwebhooks.webhooks import Webhook, WebhookVerificationError

SECONDS_MAX = 600
seen: set[str] = set()


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        try:
            webhook = Webhook(os.environ["DELTALOG_WEBHOOK_SECRET"])
            message = webhook.verify(body, {k.lower(): v for k, v in self.headers.items()})
        except WebhookVerificationError:
            self.answer(401)
            return
        if self.headers["webhook-id"] not in seen:  # it may come twice, with the same id
            seen.add(self.headers["webhook-id"])
            print(message["type"], message["data"]["arguments"], flush=True)
        self.answer(204)

    def answer(self, status: int) -> None:
        self.send_response(status)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def main(url_file: str, count: str) -> None:
    with HTTPServer(("127.0.0.1", 0), Receiver) as server:
        server.timeout = SECONDS_MAX
        Path(url_file).write_text(f"http://127.0.0.1:{server.server_port}/orders\n")
        for _ in range(int(count)):
            server.handle_request()


if __name__ == "__main__":
    main(*sys.argv[1:])
