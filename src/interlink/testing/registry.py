"""A registry of images on loopback, with one image, over TLS, and with a login where one is wanted."""

import base64
import gzip
import hashlib
import http.server
import io
import json
import ssl
import tarfile
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
_CONFIG = "application/vnd.docker.container.image.v1+json"
_LAYER = "application/vnd.docker.image.rootfs.diff.tar.gzip"


class Registry:
    """Serves `root` as the image of every name with the tag `1`, as long as the context lasts.

    config: of the image, such as Entrypoint and Cmd. login: `user:password`, which everything then needs. asked: the
    paths of all requests that were answered with something.
    """

    def __init__(
        self, root: Path, tls: ssl.SSLContext, *, config: Mapping[str, object] | None = None, login: str = ""
    ) -> None:
        self.asked: list[str] = []
        self.port = 0
        self._tls = tls
        self._expected = f"Basic {base64.b64encode(login.encode()).decode()}" if login else ""
        self._blobs: dict[str, bytes] = {}
        self._manifest = self._image(root, config or {})

    def __enter__(self) -> Self:
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.socket = self._tls.wrap_socket(self._server.socket, server_side=True)
        self.port = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def layers_sent(self) -> int:
        """How often the image's content was fetched."""
        return sum(1 for path in self.asked if path.endswith(self._layer))

    def _image(self, root: Path, config: Mapping[str, object]) -> bytes:
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as tar:
            tar.add(root, arcname=".")
        layer = self._add(packed.getvalue(), _LAYER)
        rootfs = {"type": "layers", "diff_ids": [_digest(gzip.decompress(packed.getvalue()))]}
        document = {"architecture": "amd64", "os": "linux", "config": dict(config), "rootfs": rootfs} | {
            "history": [{"created_by": "a test"}]
        }
        self._layer = layer["digest"]
        manifest = {
            "schemaVersion": 2,
            "mediaType": _MANIFEST,
            "config": self._add(json.dumps(document).encode(), _CONFIG),
            "layers": [layer],
        }
        return json.dumps(manifest).encode()

    def _add(self, content: bytes, kind: str) -> dict[str, Any]:
        digest = _digest(content)
        self._blobs[digest] = content
        return {"mediaType": kind, "size": len(content), "digest": digest}

    def _found(self, path: str) -> tuple[str, bytes] | None:
        name = path.rsplit("/", 1)[-1]
        if path == "/v2/":
            return "application/json", b"{}"
        if "/manifests/" in path and name in ("1", _digest(self._manifest)):
            return _MANIFEST, self._manifest
        if "/blobs/" in path and name in self._blobs:
            return "application/octet-stream", self._blobs[name]
        return None

    def _handler(self) -> type[http.server.BaseHTTPRequestHandler]:
        registry = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_HEAD(self) -> None:
                self._answer(has_body=False)

            def do_GET(self) -> None:
                self._answer(has_body=True)

            def _answer(self, *, has_body: bool) -> None:
                found = registry._found(self.path)
                if registry._expected and self.headers.get("Authorization") != registry._expected:
                    self._send(401, "application/json", _error("UNAUTHORIZED", "authentication required"), has_body)
                elif found is None:
                    self._send(404, "application/json", _error("MANIFEST_UNKNOWN", "manifest unknown"), has_body)
                else:
                    if has_body:
                        registry.asked.append(self.path)
                    self._send(200, *found, has_body)

            def _send(self, code: int, kind: str, body: bytes, has_body: bool) -> None:
                self.send_response(code)
                if code == 401:
                    self.send_header("WWW-Authenticate", 'Basic realm="test"')
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.send_header("Docker-Content-Digest", _digest(body))
                self.end_headers()
                if has_body:
                    self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                pass

        return Handler


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _error(code: str, message: str) -> bytes:
    return json.dumps({"errors": [{"code": code, "message": message}]}).encode()
