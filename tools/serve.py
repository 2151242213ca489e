"""Serve the built site on 127.0.0.1 and open it in a browser; unknown addresses get the book's own 404 page."""

import argparse
import errno
import functools
import http.server
import sys
import threading
import webbrowser
from pathlib import Path

SITE = Path(__file__).resolve().parent.parent / "_build" / "html"


class Handler(http.server.SimpleHTTPRequestHandler):
    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        page = Path(self.directory) / "404.html"
        if code != 404 or not page.exists():
            super().send_error(code, message, explain)
            return
        body = page.read_bytes()
        self.send_response(404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet: the reader wants the address, not a line a file."""


def server(port: int, site: Path = SITE) -> http.server.ThreadingHTTPServer:
    return http.server.ThreadingHTTPServer(("127.0.0.1", port), functools.partial(Handler, directory=str(site)))


def main() -> int:
    parser = argparse.ArgumentParser(description="Serve the built book.")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--no-open", action="store_true", help="do not open a browser")
    arguments = parser.parse_args()
    try:
        serving = server(arguments.port)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        print(f"port {arguments.port} is taken; try `make book PORT={arguments.port + 1}`", file=sys.stderr)
        return 1
    address = f"http://127.0.0.1:{serving.server_port}/"
    print(f"The book is at {address} (Ctrl-C stops the server)", flush=True)
    if not arguments.no_open:
        threading.Timer(0.3, webbrowser.open, [address]).start()
    try:
        serving.serve_forever()
    except KeyboardInterrupt:
        print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
