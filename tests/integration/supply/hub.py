"""A small model hub over HTTP: what `huggingface_hub` asks for a pinned commit, from files in memory."""

import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self
from urllib.parse import unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"
LARGE_BYTES = 10_000
"""Above this a file is in LFS, so that the hub knows its SHA-256."""


class Hub:
    """A context manager: one repository at one commit, seen by whoever has the token."""

    def __init__(self, repository: str, files: dict[str, bytes], *, token: str | None = None) -> None:
        self.repository = repository
        self.files = files
        self.token = token
        self.downloads: list[tuple[str, str | None]] = []
        self.cut_after: dict[str, int] = {}
        self.commit = COMMIT
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def info(self) -> dict[str, object]:
        siblings = []
        for path, content in self.files.items():
            blob = hashlib.sha1(content).hexdigest()
            sibling: dict[str, object] = {"rfilename": path, "size": len(content), "blobId": blob}
            if len(content) > LARGE_BYTES:
                sha256 = hashlib.sha256(content).hexdigest()
                sibling["lfs"] = {"sha256": sha256, "size": len(content), "pointerSize": 130}
            siblings.append(sibling)
        return {"id": self.repository, "modelId": self.repository, "sha": self.commit, "siblings": siblings}


def _handler(hub: Hub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            path = unquote(urlsplit(self.path).path)
            if hub.token and self.headers.get("authorization") != f"Bearer {hub.token}":
                return self._answer(401, {"x-error-code": "RepoNotFound"}, b"{}")
            if path.startswith(f"/api/models/{hub.repository}"):
                return self._answer(200, {"content-type": "application/json"}, json.dumps(hub.info()).encode())
            repository, _, rest = path.lstrip("/").partition("/resolve/")
            revision, _, name = rest.partition("/")
            if repository != hub.repository:
                return self._answer(404, {"x-error-code": "RepoNotFound"}, b"{}")
            if revision != hub.commit or name not in hub.files:
                return self._answer(404, {"x-error-code": "EntryNotFound"}, b"{}")
            return self._file(name)

        do_HEAD = do_GET  # noqa: N815

        def _file(self, name: str) -> None:
            content = hub.files[name]
            etag = hashlib.sha256(content).hexdigest()
            headers = {"etag": f'"{etag}"', "x-repo-commit": hub.commit, "accept-ranges": "bytes"}
            wanted = self.headers.get("range")
            if self.command == "GET":
                hub.downloads.append((name, wanted))
            if not wanted:
                cut = hub.cut_after.pop(name, None) if self.command == "GET" else None
                return self._answer(200, headers, content, cut_after=cut)
            first = int(wanted.removeprefix("bytes=").split("-")[0])
            headers["content-range"] = f"bytes {first}-{len(content) - 1}/{len(content)}"
            return self._answer(206, headers, content[first:])

        def _answer(self, status: int, headers: dict[str, str], content: bytes, cut_after: int | None = None) -> None:
            self.send_response(status)
            for header, value in {**headers, "content-length": str(len(content))}.items():
                self.send_header(header, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content[:cut_after])
            if cut_after is not None:
                self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:
            """Not into the tests' output."""

    return Handler
