"""Object stores: opening, listing, and telling what they refuse, through fsspec (s3fs for `s3://`).

Credentials, region and endpoint come from where every tool of the store has them: the environment, profiles, the
machine's role. The libraries try a failed request again by themselves; what still fails is one sentence.
"""

from __future__ import annotations

import errno
import io
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from itertools import islice
from typing import Any, cast

from analytics.errors import StoreError, UsageError
from analytics.places import Place, below

SOURCE_BLOCK = 8 << 20  # bytes asked for at once of a source that is read from its beginning
PARQUET_BLOCK = 1 << 20
NO_BUCKET = "there is no such bucket"
_MIB = 1 << 20
_LOG_ENTRIES = 500
_AT_ONCE = 500  # small objects that are asked for together
_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_PACKAGES = {"s3": "pip install 'runlake[s3]'", "gs": "pip install gcsfs", "az": "pip install adlfs"}
_DENIED = ("AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "403", "401")
_NO_KEYS = ("no credentials were found. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or give this "
            "machine a role")  # fmt: skip


@cache
def filesystem(scheme: str) -> Any:
    """The one fsspec file system of a scheme. Its listings are never kept: other hosts write, too."""
    remedy = _PACKAGES.get(scheme, _PACKAGES["az"])
    try:
        import fsspec  # noqa: PLC0415 (an extra)
        import upath  # noqa: F401, PLC0415 (the same)

        return fsspec.filesystem(scheme, **_options(scheme))
    except ImportError as error:
        raise UsageError(f"Reading {scheme}:// needs a package that is not installed: {remedy} ({error}).") from error


def _options(scheme: str) -> dict[str, Any]:
    options: dict[str, Any] = {"use_listings_cache": False}
    region = os.environ.get("AWS_REGION")
    if scheme == "s3" and region and "AWS_DEFAULT_REGION" not in os.environ:  # botocore knows only the latter
        options["client_kwargs"] = {"region_name": region}
    return options


def place(path: str) -> Place:
    """A path inside a store."""
    scheme = path.split("://", 1)[0]
    filesystem(scheme)
    from upath import UPath  # noqa: PLC0415 (an extra; there, as the line above saw)

    return cast("Place", UPath(path, **_options(scheme)))


def fs_of(path: str | Place) -> Any:
    """The file system of a remote path."""
    return filesystem(str(path).split("://", 1)[0])


def delta_options(root: Place) -> dict[str, str]:
    """Storage options for the Delta library: what botocore finds, so that both halves use the same credentials.

    A commit is a put that fails where the version is there already (`etag`); two writers never overwrite each other.
    """
    if not str(root).startswith("s3://"):
        return {}  # the Delta library finds what it needs in the environment
    session = _session(os.environ.get("AWS_PROFILE"))
    options = {"aws_conditional_put": "etag"}
    held = session.get_credentials()
    if held is not None:
        frozen = held.get_frozen_credentials()
        named = {"access_key_id": frozen.access_key, "secret_access_key": frozen.secret_key, "token": frozen.token}
        options |= {f"aws_{'session_' if name == 'token' else ''}{name}": text for name, text in named.items() if text}
    region = os.environ.get("AWS_REGION") or session.get_config_variable("region")
    options["aws_region"] = region or "us-east-1"
    endpoint = _endpoint(session)
    if endpoint:
        options["aws_endpoint_url"] = endpoint
        if endpoint.startswith("http://"):  # whoever names such an endpoint means it
            options["aws_allow_http"] = "true"
    return options


@cache
def _session(profile: str | None) -> Any:
    """What finds credentials, and new ones when they end. Made once: it takes 40 ms."""
    import botocore.session  # noqa: PLC0415 (an extra)

    return botocore.session.Session(profile=profile)


def _endpoint(session: Any) -> str | None:
    """Where requests go, if not to the vendor's own place."""
    for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"):
        if os.environ.get(name):
            return os.environ[name]
    try:
        return cast("str | None", session.get_scoped_config().get("endpoint_url"))
    except Exception as error:  # botocore's own: the profile that AWS_PROFILE names is not there
        raise StoreError(f"The store cannot be reached: {error}. Check AWS_PROFILE and ~/.aws/config.") from error


class Handle(io.RawIOBase):
    """An open object. Whatever its library raises is an OSError here, with the path; `size` in bytes when reading."""

    def __init__(self, path: str, file: Any) -> None:
        self.path, self._file = path, file
        self.size = int(getattr(file, "size", 0) or 0)
        self.info: dict[str, Any] = getattr(file, "details", None) or {} if file.readable() else {}

    def readable(self) -> bool:
        """True: it was opened for reading."""
        return bool(self._file.readable())

    def writable(self) -> bool:
        """True: it was opened for writing."""
        return bool(self._file.writable())

    def seekable(self) -> bool:
        """True: it was opened for reading."""
        return bool(self._file.seekable())

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """As of any file; nothing is asked of the store."""
        return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        """Where the next byte is read or written."""
        return int(self._file.tell())

    def readinto(self, view: Any) -> int:
        """Fills the view, less only at the end."""
        with as_os_errors(self.path):
            data = self._file.read(len(view))
        view[: len(data)] = data
        return len(data)

    def read(self, size: int = -1) -> bytes:
        """At most `size` bytes, all that follow if negative."""
        with as_os_errors(self.path):
            return bytes(self._file.read(size))

    def write(self, data: Any) -> int:
        """Queues bytes; large objects go in parts, and nothing is seen before `close`."""
        with as_os_errors(self.path):
            return int(self._file.write(data))

    def close(self) -> None:
        """Of an object that was written: now it is there."""
        if not self.closed:
            try:
                with as_os_errors(self.path):
                    self._file.close()
            finally:
                super().close()

    def abandon(self) -> None:
        """What was written so far is forgotten; an object that is already there stays."""
        if not self.closed and self._file.writable():
            with as_os_errors(self.path):
                self._file.discard()
            self._file.closed = True
        super().close()

    def __del__(self) -> None:
        """Unlike other files, an object that nobody closed must not appear half written."""


def open_for_reading(path: str, *, block: int = PARQUET_BLOCK) -> Handle:
    """An object, pinned: if another takes its place meanwhile, reading fails (where the store can say so; S3 can)."""
    with as_os_errors(path):
        return Handle(path, fs_of(path).open(path, "rb", block_size=block, cache_type="readahead"))


def open_for_writing(path: str) -> Handle:
    """A new object."""
    with as_os_errors(path):
        return Handle(path, fs_of(path).open(path, "wb", block_size=32 * _MIB))


def names_in(root: Place) -> list[str]:
    """The first level below a prefix; nothing where the prefix has nothing. Raises OSError, also without a bucket."""
    return sorted(tags_in(root))


def tags_in(root: Place) -> dict[str, str]:
    """The same, each with its ETag; "" where there is none."""
    path = str(root)
    with as_os_errors(path):
        try:
            found = fs_of(path).ls(path, detail=True)
        except FileNotFoundError as error:
            if _has_no_bucket(error):
                raise
            return {}
    return {one["name"].rstrip("/").rsplit("/", 1)[-1]: str(one.get("ETag") or "") for one in found}


def listed(path: str, *, prefix: str = "") -> dict[str, dict[str, Any]]:
    """Every object below a path, by its whole path, with `size` and what the store says of it. Raises OSError.

    `prefix`: only those whose path goes on so.
    """
    fs, scheme = fs_of(path), path.split("://", 1)[0]
    narrowed = {"prefix": prefix} if prefix else {}
    with as_os_errors(path):
        found = fs.find(path.split("://", 1)[1].rstrip("/") + "/", detail=True, **narrowed)
    return {f"{scheme}://{name}": info for name, info in found.items() if info.get("type") == "file"}


def info_of(path: str) -> dict[str, Any] | None:
    """What the store says of one object; None where there is none. Raises OSError."""
    with as_os_errors(path):
        try:
            info: dict[str, Any] = fs_of(path).info(path)
        except FileNotFoundError as error:
            if _has_no_bucket(error):
                raise
            return None
    return info if info.get("type") == "file" else None


def read_text(path: str) -> str:
    """A small object. Raises FileNotFoundError where there is none, OSError for what else goes wrong."""
    with as_os_errors(path):
        return cast("bytes", fs_of(path).cat_file(path, max_concurrency=1)).decode()  # else s3fs asks for its size


def texts(paths: list[str]) -> Iterator[str]:
    """Small objects in their order, many at once. Raises OSError."""
    rest = iter(paths)
    while some := list(islice(rest, _AT_ONCE)):
        with as_os_errors(some[0]):
            held: dict[str, bytes] = fs_of(some[0]).cat(some, max_concurrency=1)
        yield from (held[path.split("://", 1)[1]].decode() for path in some)


_log: dict[tuple[str, str], str] = {}  # (path, ETag) → text: of a lake's log, whose entries never change


def tagged_texts(folder: Place, names: Mapping[str, str]) -> Iterator[str]:
    """Small objects below a prefix, as `tags_in` has them. One that this process has read is not asked for again."""
    keys = {name: (below(folder, name), tag) for name, tag in names.items()}
    missing = [key for key in keys.values() if not key[1] or key not in _log]
    if len(_log) + len(missing) > _LOG_ENTRIES:
        _log.clear()
        missing = list(keys.values())
    _log.update(zip(missing, texts([path for path, _ in missing]), strict=True))
    yield from (_log[key] for key in keys.values())


def write_text(path: str, text: str) -> None:
    """Replaces a small object, at once as stores do."""
    with as_os_errors(path):
        fs_of(path).pipe_file(path, text.encode())


def write_new(path: str, text: str) -> bool:
    """Makes a small object if there is none; False if there is one, which stays."""
    with as_os_errors(path):
        try:
            fs_of(path).pipe_file(path, text.encode(), mode="create")
        except FileExistsError:
            return False
    return True


def delete(root: Place, relatives: list[str]) -> None:
    """Deletes objects below a prefix; one that is not there is no error."""
    if relatives:
        with as_os_errors(str(root)):
            fs_of(root).rm([below(root, relative) for relative in relatives])


def _has_no_bucket(error: OSError) -> bool:
    """True: not only the object is missing."""
    said = getattr(error.__cause__, "response", None) or {}
    code = said.get("Error", {}).get("Code")
    return code == "NoSuchBucket" or error.strerror == NO_BUCKET or "bucket does not exist" in str(error)


@contextmanager
def as_os_errors(path: str) -> Iterator[None]:
    """What a store's libraries raise becomes an OSError with a number, words a person reads, and the path."""
    try:
        yield
    except FileNotFoundError as error:
        words = NO_BUCKET if _has_no_bucket(error) else "there is no such object"
        raise FileNotFoundError(errno.ENOENT, words, path) from error
    except (KeyboardInterrupt, SystemExit, UsageError, FileExistsError):
        raise
    except Exception as error:
        raise _os_error(path, error) from error


def _os_error(path: str, error: Exception) -> OSError:
    """The error of a store as an OSError."""
    kind, words = type(error).__name__, str(error).strip()
    if isinstance(error, OSError) and error.filename == path:
        return error
    if kind in ("NoCredentialsError", "PartialCredentialsError"):
        return PermissionError(errno.EACCES, _NO_KEYS, path)
    if isinstance(error, PermissionError) or any(f"({code})" in words for code in _DENIED):
        return PermissionError(errno.EACCES, f"access is denied ({words or 'Forbidden'})", path)
    if kind == "FileExpired":
        return OSError(errno.EBUSY, "it was replaced while it was read", path)
    if "Timeout" in kind or "Connect" in kind or isinstance(error, TimeoutError):
        return OSError(errno.ETIMEDOUT, f"the store does not answer ({words or kind})", path)
    return OSError(errno.EIO, f"the store failed the request ({words or kind})", path)


def delta_words(error: Exception) -> OSError | None:
    """What the Delta library says of a store, as an OSError; None where it speaks of something else."""
    text = _ANSI.sub("", str(error))
    lines = [line.strip(" ↳\t") for line in text.splitlines() if line.strip(" ↳\t")]
    if not re.search("Error performing|Generic .* error|Object at location", text):
        return None
    code = re.search(r"<Code>([^<]+)</Code>", text)
    said = re.search(r"<Message>([^<]+)</Message>", text)
    status = re.search(r"\b([45]\d\d) [A-Z][A-Za-z ]+", text)
    words = said[1] if said else (status[0].strip() if status else lines[-1])
    if (code and code[1] in _DENIED) or (status and status[1] in _DENIED):
        return PermissionError(errno.EACCES, f"access is denied ({words})")
    if code and code[1] == "NoSuchBucket":
        return FileNotFoundError(errno.ENOENT, NO_BUCKET)
    if "error sending request" in text or "timed out" in text:
        return OSError(errno.ETIMEDOUT, f"the store does not answer ({lines[-1]})")
    return OSError(errno.EIO, f"the store failed the request ({words})")
