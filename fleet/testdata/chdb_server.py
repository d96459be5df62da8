"""A ClickHouse server for tests: chDB, which is a recent ClickHouse within a process, behind the HTTP interface."""

import http.server
import tempfile
import urllib.parse

from chdb.session import Session

session = Session()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def body(self):
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        chunks = []
        while size := int(self.rfile.readline(), 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(chunks)

    def do_POST(self):
        statement = urllib.parse.parse_qs(urllib.parse.urlparse(self.path).query).get("query", [""])[0]
        data = self.body()
        status = 200
        try:
            if statement:
                with tempfile.NamedTemporaryFile(suffix=".native") as f:
                    f.write(data)
                    f.flush()
                    into = statement.removesuffix(" FORMAT Native")
                    answer = session.query(f"{into} FROM INFILE '{f.name}' FORMAT Native")
            else:
                answer = session.query(data.decode())
            data = answer.bytes() or b""
        except Exception as e:
            status, data = 500, str(e).encode()
        self.close_connection = True  # the next client could not be served beside an idle one
        self.send_response(status)
        self.send_header("Connection", "close")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
