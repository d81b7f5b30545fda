"""Behaves like vLLM's server where a drain can see it: metrics, slow answers, an end at SIGTERM.

    stand_in_server.py PORT_FILE SECONDS_PER_REQUEST

SIGTERM ends it at once with what is still in flight: that is what a drain must prevent.
"""

import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

port_file, seconds = Path(sys.argv[1]), float(sys.argv[2])
running = 0
lock = threading.Lock()


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/metrics":
            text = f'vllm:num_requests_running{{engine="0",model_name="m"}} {float(running)}\n'
            return self.answer(text)
        with lock:
            globals()["running"] += 1
        time.sleep(seconds)
        self.answer("done")
        with lock:
            globals()["running"] -= 1
        return None

    def answer(self, text: str) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: object) -> None:
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
port_file.write_text(str(server.server_port))
server.serve_forever()
