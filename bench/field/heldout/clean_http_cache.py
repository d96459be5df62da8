"""An HTTP server caches the 200 newest answers, of which it has served far more."""
# kind: services
# expect: clean
import collections
import http.client
import http.server
import json
import threading

CACHE = collections.OrderedDict()


def answer(path):
    if path not in CACHE:
        CACHE[path] = json.dumps([f"{path}/{i}" for i in range(100)]).encode()
        if len(CACHE) > 200:
            CACHE.popitem(last=False)
    return CACHE[path]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # one packet an answer: of two, the second waits 40 ms for the first to be confirmed

    def do_GET(self):
        body = answer(self.path)
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
for request in range(36_000):
    client.request("GET", f"/item/{request * 7 % 3000}")
    total += len(client.getresponse().read())
client.close()
server.shutdown()
print(f"total {total}")
