"""The server at which the Codex program signs a person in, on loopback: codes are given out, and entered one day.

By its other way the browser comes here and is sent back to the program with a code, for whoever `enter` named.
"""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlencode, urlsplit

from tests.simulator.homes import codex_claims, jwt

CODE = "ABCD-EFGHI"


class SignInServer:
    """Gives out one code after another; `enter(code, key)` signs in whoever waits with it. `asked`: the paths."""

    def __init__(self, port=0, tls=None):
        self.asked = []
        self.given = 0
        self.entered = {}
        self.refuses = False
        self._server = ThreadingHTTPServer(("127.0.0.1", port), self._handler())
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self._server.server_port}"

    def enter(self, code, key):
        self.entered[code] = key

    def close(self):
        self._server.shutdown()
        self._server.server_close()

    def answer(self, path, body):
        self.asked.append(path)
        if self.refuses:
            return 503, {}
        if path.endswith("/deviceauth/usercode"):
            self.given += 1
            code = CODE if self.given == 1 else f"{CODE[:-1]}{self.given}"
            return 200, {"device_auth_id": f"device-{self.given}", "user_code": code, "interval": "1"}
        if path.endswith("/deviceauth/token"):
            code = json.loads(body)["user_code"]
            if code not in self.entered:
                return 403, {}
            return 200, {"authorization_code": code, "code_challenge": "c", "code_verifier": "v"}
        if path.endswith("/oauth/token"):
            key = next((key for code, key in self.entered.items() if code.encode() in body), None)
            if key is not None:
                tokens = {"id_token": jwt(codex_claims(key)), "access_token": key.secret, "refresh_token": "rt-x"}
                return 200, tokens
        return 404, {}

    def sent_back(self, path):
        """Where the browser goes on from the sign-in page: to the program that waits for it on this computer."""
        self.asked.append(urlsplit(path).path)
        query = dict(parse_qsl(urlsplit(path).query))
        return f"{query['redirect_uri']}?{urlencode({'code': next(iter(self.entered)), 'state': query['state']})}"

    def _handler(self):
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(302)
                self.send_header("location", server.sent_back(self.path))
                self.send_header("content-length", "0")
                self.end_headers()

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                status, said = server.answer(self.path, body)
                data = json.dumps(said).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass

        return Handler
