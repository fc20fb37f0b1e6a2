"""Writes an invoice for each confirmed order, once, however often the event comes."""

import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import psycopg
from standardwebhooks import Webhook, WebhookVerificationError

MAX_BODY_BYTES = 4 * 1024 * 1024

webhook = Webhook(os.environ["WEBHOOK_SECRET"])


def receive(cursor: psycopg.Cursor, event: dict) -> None:
    """Acts on an event in the caller's transaction, unless it has done so before."""
    cursor.execute("SELECT inbox_accept('billing', %s)", (event["event_id"],))
    if cursor.fetchone() == ("first",):
        cursor.execute(
            "INSERT INTO invoice (order_id, total) VALUES (%s, %s)",
            (event["aggregate_id"], event["data"]["total"]),
        )


class Hooks(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 30

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length", 0))
        if length > MAX_BODY_BYTES:
            self.close_connection = True
            return self.answer(413)
        body = self.rfile.read(length)
        try:
            # Over the raw bytes: a parsed and rewritten body would have another signature.
            webhook.verify(body, dict(self.headers))
        except WebhookVerificationError:
            return self.answer(401)
        try:
            with psycopg.connect(os.environ["DATABASE_URL"]) as connection, connection.cursor() as cursor:
                receive(cursor, json.loads(body))
        except psycopg.Error as error:
            self.log_error("%s", error)
            return self.answer(500)  # the sender tries again
        self.answer(200)  # only now: it is committed

    def answer(self, status: int) -> None:
        self.send_response(status)
        self.send_header("content-length", "0")
        self.end_headers()


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", 0))), Hooks)
    print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
