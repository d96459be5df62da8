"""An HTTP server keeps a session for each client that comes without a cookie; --fixed keeps the newest 500."""
# kind: services
# holder: SESSIONS
# cause: cache-without-bound container-grows
# rate: ~2200 B/request
import collections
import http.client
import http.server
import json
import sys
import threading
import uuid

FIXED = "--fixed" in sys.argv
SESSIONS = collections.OrderedDict()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # one packet an answer: of two, the second waits 40 ms for the first to be confirmed

    def do_GET(self):
        session = {"id": len(SESSIONS), "basket": [f"{self.path}-{i}" for i in range(24)]}  # leak
        SESSIONS[uuid.uuid4().hex] = session  # leak
        if FIXED and len(SESSIONS) > 500:
            SESSIONS.popitem(last=False)
        body = json.dumps(len(session["basket"])).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
client = http.client.HTTPConnection(*server.server_address)
total = 0
for request in range(40_000):
    client.request("GET", f"/item/{request}")
    total += int(client.getresponse().read())
client.close()
server.shutdown()
print(f"total {total}")
