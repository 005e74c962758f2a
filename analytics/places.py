"""Where lakes and sources stand: a local path, or a place in an object store such as `s3://bucket/prefix`.

The one module that tells the two apart. It loads nothing for local paths; what object stores need is in
`analytics.objects`, loaded when a path names one.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from analytics.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

# A local path, or universal-pathlib's UPath, which behaves like one in what is asked of it here: `/`, name, open,
# read_text, write_text, exists, is_dir, unlink, glob.
Place: TypeAlias = Path

SCHEMES = ("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss")
HOST_VARIABLE = "RUNLAKE_HOST"
_REQUESTS = 16  # at once
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


def is_remote(path: str | os.PathLike[str]) -> bool:
    """True: the path names a place in an object store. A local path never holds `//` once it is a `Path`."""
    text = path if isinstance(path, str) else str(path)
    return not text.startswith("/") and _SCHEME.match(text) is not None


def normal(path: str) -> str:
    """The one spelling of a remote path; two spellings of it would be two sources."""
    found = _SCHEME.match(path)
    scheme = found[1].lower() if found else ""
    if scheme not in SCHEMES:
        raise UsageError.unknown_name("kind of place", f"{scheme}://", [f"{name}://" for name in SCHEMES])
    rest = path[len(scheme) + 3 :].rstrip("/")
    if not rest.split("/", 1)[0]:
        raise UsageError(f"{path!r} names no bucket. Write {scheme}://BUCKET/PREFIX.")
    return f"{ {'s3a': 's3', 'gcs': 'gs'}.get(scheme, scheme) }://{rest}"


def below(root: Place, relative: str) -> str:
    """The whole path of something in a lake, as text: 20 times as fast as joining paths."""
    text = str(root)
    return f"{text}{relative}" if text.endswith("/") else f"{text}/{relative}"  # a whole bucket ends in one


def absolute(path: str) -> str:
    """A path that means the same in every folder, as problems name it."""
    found = _SCHEME.match(path)
    return normal(path) if found is not None and found[1].lower() in SCHEMES else os.path.abspath(path)


def place(path: str | os.PathLike[str]) -> Place:
    """The lake's root as a path that the rest of runlake works with."""
    text = os.fspath(path) if isinstance(path, str | Path) else str(path)
    if not is_remote(text):
        return Path(os.path.realpath(text))
    from analytics import objects  # noqa: PLC0415 (0.5 s; local lakes need none of it)

    return objects.place(normal(text))


def names_in(root: Place) -> list[str]:
    """What stands in a folder; nothing where there is no such folder."""
    if is_remote(root):
        from analytics import objects  # noqa: PLC0415 (the same)

        return objects.names_in(root)
    return [entry.name for entry in os.scandir(root)] if root.is_dir() else []


def tags_in(folder: Place) -> dict[str, str]:
    """What stands in a folder, each with what changes when it is written anew (no more than "" on disk)."""
    if not is_remote(folder):
        return dict.fromkeys(os.listdir(folder), "")
    from analytics import objects  # noqa: PLC0415 (the same)

    return objects.tags_in(folder)


def texts(folder: Place, names: Mapping[str, str]) -> Iterator[str]:
    """Small files of a folder in order, named as by `tags_in`; from an object store many at once. Raises OSError."""
    if not is_remote(folder):
        for name in names:
            yield (folder / name).read_text(encoding="utf-8")
        return
    from analytics import objects  # noqa: PLC0415 (the same)

    yield from objects.tagged_texts(folder, names)


def storage_options(root: Place) -> dict[str, str] | None:
    """What the Delta library must be told to reach the lake; None for a local one."""
    if not is_remote(root):
        return None
    from analytics import objects  # noqa: PLC0415 (the same)

    return objects.delta_options(root)


def parquet_file(path: Place) -> pq.ParquetFile:
    """A Parquet file of the lake, open for reading. Close it, or use it as a context."""
    import pyarrow.parquet as pq  # noqa: PLC0415 (0.15 s; who only reads reports needs none)

    if not is_remote(path):
        return pq.ParquetFile(path)
    from analytics import objects  # noqa: PLC0415 (the same)

    # one request for the columns wanted of a row group, not one for each
    return pq.ParquetFile(objects.open_for_reading(str(path)), pre_buffer=True)


def tables(paths: Sequence[Place], columns: Sequence[str]) -> Iterator[pa.Table]:
    """Columns of some Parquet files, in their order. From an object store several at a time: each waits for it."""

    def read(path: Place) -> pa.Table:
        with parquet_file(path) as reader:
            return reader.read(columns=list(columns))

    if not paths or not is_remote(paths[0]):
        yield from map(read, paths)
        return
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 (10 ms; the same)

    with ThreadPoolExecutor(_REQUESTS) as pool:
        yield from pool.map(read, paths)


def footer(path: Place) -> tuple[pq.FileMetaData, int]:
    """A Parquet file's footer, and the file's size in bytes. Raises OSError or pyarrow's ArrowInvalid."""
    import pyarrow.parquet as pq  # noqa: PLC0415 (the same)

    if not is_remote(path):
        return pq.read_metadata(path), path.stat().st_size
    from analytics import objects  # noqa: PLC0415 (the same)

    with objects.open_for_reading(str(path)) as file:
        return pq.read_metadata(file), file.size


def where(path: Place) -> Any:
    """What the Parquet writer writes to: the path, or an open object that appears when it is closed."""
    if not is_remote(path):
        return path
    from analytics import objects  # noqa: PLC0415 (the same)

    return objects.open_for_writing(str(path))


def host_name() -> str:
    """What this machine is called in the ledger: RUNLAKE_HOST, else its node name (a container's is a random one)."""
    return os.environ.get(HOST_VARIABLE) or platform.node()
