# SPDX-License-Identifier: Apache-2.0
"""The API of the burst lab: each request is a thread that computes SHA-256. Answers with the thread's number and when it was made."""

import hashlib
import http.server
import json
import sys
import threading
import time

ROUNDS = int(sys.argv[1])


def work():
    digest = b""
    for _ in range(ROUNDS):
        digest = hashlib.sha256(digest).digest()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):  # pylint: disable=invalid-name
        work()
        body = json.dumps({"tid": threading.get_native_id(), "made_ns": self.server.made_ns.pop(self.client_address)}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):  # pylint: disable=arguments-differ
        pass


class Server(http.server.ThreadingHTTPServer):
    # Five by default: a burst that comes while the server is stalled would meet a full queue, and a second's wait for the next SYN.
    request_queue_size = 128
    made_ns = {}

    def process_request(self, request, client_address):
        self.made_ns[client_address] = time.monotonic_ns()
        super().process_request(request, client_address)


costs = []
for _ in range(20):
    begun = time.thread_time_ns()
    work()
    costs.append(time.thread_time_ns() - begun)
server = Server(("127.0.0.1", 0), Handler)
print(json.dumps({"port": server.server_port, "cost_ns": sorted(costs)[len(costs) // 2]}), flush=True)
server.serve_forever()
