"""An object store on 127.0.0.1 for tests: moto's server, with requests counted and some of them made to fail."""

from __future__ import annotations

import http.client
import itertools
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

_numbers = itertools.count(1)
ROOT = Path(__file__).parents[1]
KEYS = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",  # no key is asked of a machine that is not there
}


@dataclass(slots=True)
class Fault:
    """What happens to requests that match (a pattern on `METHOD /path?query`): an answer of that status, or a delay.

    times: of how many requests. delay: in seconds. is_done: the store does what it is asked, and says that it failed.
    """

    matches: str
    status: str = "503 Slow Down"
    code: str = "ServiceUnavailable"
    times: int = 1_000_000
    delay: float = 0.0
    is_done: bool = False


@dataclass(slots=True)
class ObjectStore:
    """The server: where it is, what it was asked, and what is to go wrong."""

    endpoint: str
    client: object = None  # boto3's, made once: it reads half a megabyte of JSON first

    def fail(self, *faults: Fault) -> None:
        """From now on these faults, and no others."""
        self._control("PUT", "faults", [asdict(fault) for fault in faults])

    def requests(self) -> list[str]:
        """What it was asked since `forget`, as `METHOD /path?query`."""
        return self._control("GET", "requests")

    def forget(self) -> None:
        """The requests so far."""
        self._control("PUT", "requests", [])

    def asked(self, pattern: str) -> int:
        """How many requests match."""
        return sum(re.search(pattern, one) is not None for one in self.requests())

    def _control(self, method: str, what: str, said: object = None):
        connection = http.client.HTTPConnection(self.endpoint.removeprefix("http://"), timeout=60)
        connection.request(method, f"/__{what}", json.dumps(said))
        answer = json.loads(connection.getresponse().read())
        connection.close()
        return answer


class _Application:
    """moto's, behind the faults. It has a process of its own: the Delta library holds Python's lock while it waits."""

    def __init__(self) -> None:
        from moto.server import DomainDispatcherApplication, create_backend_app

        self._app = DomainDispatcherApplication(create_backend_app)
        self._faults: list[dict] = []
        self._requests: list[str] = []
        self._lock = threading.Lock()

    def __call__(self, environ, start_response):
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        asked = f"{method} {path}" + (f"?{environ['QUERY_STRING']}" if environ["QUERY_STRING"] else "")
        if path.startswith("/__"):
            return self._control(path[3:], method, environ, start_response)
        with self._lock:
            self._requests.append(asked)
            fault = next((f for f in self._faults if f["times"] and re.search(f["matches"], asked)), None)
            if fault is not None:
                fault["times"] -= 1
        if fault is None:
            return self._app(environ, start_response)
        time.sleep(fault["delay"])
        if fault["status"] == "200":
            return self._app(environ, start_response)
        if fault["is_done"]:
            list(self._app(environ, lambda *_, **__: None))
        else:
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        body = f"<Error><Code>{fault['code']}</Code><Message>made to fail</Message></Error>".encode()
        start_response(fault["status"], [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))])
        return [b"" if method == "HEAD" else body]

    def _control(self, what, method, environ, start_response):
        held = self._faults if what == "faults" else self._requests
        with self._lock:
            if method == "PUT":
                held[:] = json.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
            body = json.dumps(held).encode()
        start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
        return [body]


def serve() -> None:
    """The server; says its port on stdout, and ends when stdin does."""
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Quiet(WSGIRequestHandler):
        protocol_version = "HTTP/1.1"

        def log(self, *_args, **_more):
            """Not into the tests' output."""

    server = make_server("127.0.0.1", 0, _Application(), threaded=True, request_handler=Quiet)
    print(server.server_port, flush=True)  # noqa: T201 (how its tests learn it)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()


@dataclass(slots=True)
class Bucket:
    """An empty bucket."""

    store: ObjectStore
    client: object
    name: str

    def url(self, key: str = "") -> str:
        """The path that runlake is given."""
        return f"s3://{self.name}/{key}".rstrip("/")

    def put(self, key: str, data: bytes | str) -> str:
        """An object, new or written over."""
        self.client.put_object(Bucket=self.name, Key=key, Body=data.encode() if isinstance(data, str) else data)
        return self.url(key)

    def get(self, key: str) -> bytes:
        """What an object holds."""
        return self.client.get_object(Bucket=self.name, Key=key)["Body"].read()

    def upload(self, folder: Path, prefix: str) -> None:
        """A folder with all that is in it."""
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                self.put(f"{prefix}/{path.relative_to(folder)}", path.read_bytes())

    def listing(self, prefix: str = "") -> list[str]:
        """The objects below a prefix."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.name, Prefix=prefix)
        return [one["Key"] for page in pages for one in page.get("Contents", ())]

    def environ(self, **more: str) -> dict[str, str]:
        """The environment of a process that is to reach it."""
        held = {name: text for name, text in os.environ.items() if not name.startswith(("AWS_", "RUNLAKE_"))}
        return held | KEYS | {"AWS_ENDPOINT_URL": self.store.endpoint, "PYTHONPATH": str(ROOT)} | more

    def start(self, *arguments: str, program: tuple[str, ...] = ("-m", "analytics"), **more: str) -> subprocess.Popen:
        """A process of its own: the command line, unless `program` says otherwise."""
        return subprocess.Popen(
            [sys.executable, *program, *arguments], env=self.environ(**more), text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip


@contextmanager
def serving() -> Iterator[ObjectStore]:
    """A server in a process of its own, as long as the body runs."""
    server = subprocess.Popen(
        [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env=os.environ | KEYS,
    )  # fmt: skip
    try:
        import boto3

        endpoint = f"http://127.0.0.1:{server.stdout.readline().strip()}"
        keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test", "region_name": "us-east-1"}
        yield ObjectStore(endpoint, boto3.client("s3", endpoint_url=endpoint, **keys))
    finally:
        server.communicate()


def new_bucket(store: ObjectStore) -> Bucket:
    """An empty bucket in a store that works. The environment must say where that is (`KEYS`)."""
    store.fail()
    name = f"bucket-{os.getpid()}-{next(_numbers)}"
    store.client.create_bucket(Bucket=name)
    store.forget()
    return Bucket(store, store.client, name)


def forget_connections() -> None:
    """What the libraries keep of an environment that has changed."""
    import s3fs

    from analytics import objects

    objects.filesystem.cache_clear()
    objects._session.cache_clear()
    s3fs.S3FileSystem.clear_instance_cache()


if __name__ == "__main__":
    serve()
