"""One server process: start, stop, kill, talk to it, and show its log when a test fails."""

import http.client
import itertools
import json
import os
import signal
import socket
import subprocess
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

from qdrant_client import QdrantClient

READY_SECONDS = 60


def binary():
    """The server under test, as `cargo xtask client` built it."""
    path = os.environ.get("FLATWATER_BIN")
    if not path:
        raise RuntimeError("FLATWATER_BIN is not set; run the suite with `cargo xtask client`")
    return path


# Each worker of the suite has ports of its own, below those that the system lends to outgoing connections:
# a server must find its port free again after a restart.
WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
PORTS = itertools.cycle(range(10_000 + 1_000 * (WORKER % 20), 11_000 + 1_000 * (WORKER % 20)))


def free_port():
    for port in PORTS:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


@dataclass
class Reply:
    """An answer as it came over the wire."""

    status: int
    headers: dict
    body: bytes

    @property
    def text(self):
        return self.body.decode("utf-8")

    def json(self):
        return json.loads(self.body)

    @property
    def error(self):
        """The text of an error envelope; fails if the answer is not one."""
        answer = self.json()
        assert isinstance(answer.get("time"), (int, float)), answer
        assert answer.get("result") is None, answer
        assert isinstance(answer["status"], dict) and list(answer["status"]) == ["error"], answer
        return answer["status"]["error"]

    @property
    def result(self):
        """The result of a success envelope; fails if the answer is not one."""
        assert self.status == 200, (self.status, self.text)
        answer = self.json()
        assert answer["status"] == "ok" and isinstance(answer["time"], (int, float)), answer
        return answer["result"]


class CutOff(Exception):
    """The connection ended before the answer was there."""


class Session:
    """One connection that is kept: a fifth of the time of a new one for each request."""

    def __init__(self, server):
        self.server, self.connection = server, None

    def call(self, method, path, body=None):
        """One request; raises CutOff if no whole answer came."""
        if self.connection is None:
            self.connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
        body = None if body is None else json.dumps(body).encode()
        try:
            self.connection.request(method, path, body, {"Content-Type": "application/json"})
            answer = self.connection.getresponse()
            return Reply(answer.status, dict(answer.getheaders()), answer.read())
        except (OSError, http.client.HTTPException) as reason:
            self.connection.close()
            raise CutOff(f"{method} {path}") from reason


class Server:
    """A server on a free port of the loopback interface with a storage folder of its own."""

    def __init__(self, folder, settings=None):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.storage = self.folder / "storage"
        self.log_path = self.folder / "server.log"
        self.port = free_port()
        self.grpc_port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.settings = settings or {}
        self.process = None

    def sealed_segments(self):
        """Names of the folders of sealed segments; those that are removed meanwhile are passed over."""
        folders = os.walk(self.storage)
        return {os.path.basename(folder) for folder, _, files in folders if "sealed-ids" in files}

    def environment(self):
        """Ours without settings, then the server's; a setting that is None is left out."""
        ours = ("FLATWATER__", "QDRANT__", "RUN_MODE")
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
        own = {
            "FLATWATER__SERVICE__HOST": "127.0.0.1",
            "FLATWATER__SERVICE__HTTP_PORT": str(self.port),
            "FLATWATER__SERVICE__GRPC_PORT": str(self.grpc_port),
            "FLATWATER__STORAGE__STORAGE_PATH": str(self.storage),
        }
        return inherited | {k: v for k, v in (own | self.settings).items() if v is not None}

    def start(self, wait=True):
        assert self.process is None, "the server is running"
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [binary()],
                cwd=self.folder,
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        if wait:
            self.wait_until_ready()
        return self

    def wait_until_ready(self):
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline:
            assert self.alive(), f"the server ended with {self.process.returncode}\n{self.log()}"
            try:
                if self.call("GET", "/readyz").status == 200:
                    return
            except OSError:
                pass
            time.sleep(0.02)
        raise AssertionError(f"not ready after {READY_SECONDS} s\n{self.log()}")

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def kill(self):
        """kill -9, the way a crash or the kernel ends a process."""
        self.process.kill()
        self.process.wait()
        self.process = None

    def stop(self, within):
        """SIGTERM; returns (exit code, seconds). It is an error to take longer than `within`."""
        begin = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(timeout=within)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running {within} s after SIGTERM\n{self.log()}") from None
        self.process = None
        return code, time.monotonic() - begin

    def log(self, last=4000):
        return self.log_path.read_text(errors="replace")[-last:] if self.log_path.exists() else ""

    def client(self, grpc=False, **options):
        # Without TLS nothing is verified; to load the system's certificates takes half a second
        # a client. The versions are compared by one test instead of by every client. Connections
        # are kept, which this client does on the loopback interface only if it is told how many.
        options = {"verify": False, "check_compatibility": False, "pool_size": 3} | options
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            # That a key is sent without TLS is what the client warns of, rightly.
            warnings.filterwarnings("ignore", "Api key is used with an insecure connection")
            return QdrantClient(
                url=self.url, grpc_port=self.grpc_port, prefer_grpc=grpc, timeout=60, **options
            )

    def call(self, method, path, body=None, timeout=60, headers=None):
        """One request with the path exactly as given; `body` is bytes, text, or a JSON value."""
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
        if isinstance(body, str):
            body = body.encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            try:
                headers = {"Content-Type": "application/json"} | (headers or {})
                connection.request(method, path, body, headers)
            except (BrokenPipeError, ConnectionResetError):
                pass  # Refused before the whole body was sent; the answer is there to be read.
            answer = connection.getresponse()
            return Reply(answer.status, dict(answer.getheaders()), answer.read())
        finally:
            connection.close()

    def scroll_all(self, collection, page=256):
        """Every point of a collection with payload and vectors, page by page."""
        points, offset = [], None
        while True:
            request = {"limit": page, "with_payload": True, "with_vector": True}
            if offset is not None:
                request["offset"] = offset
            answer = self.call("POST", f"/collections/{collection}/points/scroll", request).result
            points += answer["points"]
            offset = answer["next_page_offset"]
            if offset is None:
                return points

    def optimizations(self, collection, query=""):
        return self.call("GET", f"/collections/{collection}/optimizations{query}").result

    def wait_until_idle(self, collection, within):
        """Waits for green with no background work running or queued; returns the info."""
        deadline = time.monotonic() + within
        while True:
            work = self.optimizations(collection)
            info = self.call("GET", f"/collections/{collection}").result
            idle = not work["running"] and work["summary"]["queued_optimizations"] == 0
            if idle and info["status"] == "green":
                return info
            assert time.monotonic() < deadline, f"busy after {within} s: {info}\n{work}"
            time.sleep(0.1)
