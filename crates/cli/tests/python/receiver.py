"""A receiver as its users write it: verifies every request with the public package `standardwebhooks`.

Usage: receiver.py SECRET. Prints its port, then one JSON object per request; answers 204, or 401 when the signature
does not fit. Ends with its standard input.
"""

import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from standardwebhooks.webhooks import Webhook, WebhookVerificationError

webhook = Webhook(sys.argv[1])


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        try:
            event = webhook.verify(body, dict(self.headers.items()))
            said, status = {"verified": True, "event": event}, 204
        except WebhookVerificationError as error:
            said, status = {"verified": False, "problem": str(error)}, 401
        print(json.dumps(said), flush=True)
        self.send_response(status)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def end_with_standard_input():
    sys.stdin.read()
    os._exit(0)


server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
print(server.server_port, flush=True)
threading.Thread(target=end_with_standard_input, daemon=True).start()
server.serve_forever()
