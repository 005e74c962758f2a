"""Data files on disk for good, before a commit names them."""

from __future__ import annotations

import os
from functools import partial

from analytics.lakefiles import WrittenFile
from analytics.places import Place, is_remote

_FEW, _AT_ONCE = 4, 8


def make_durable(root: Place, files: list[WrittenFile], *, shared: bool) -> None:
    """On disk before the log names them, so that a power cut leaves no commit that points at nothing.

    And private, whoever made the files. An object store keeps what it has taken, and knows no modes.
    """
    if is_remote(root):
        return
    paths = [root / file.relative for file in files]
    folders = {folder for path in paths for folder in (path.parent, path.parent.parent)}
    sync = partial(_sync, shared=shared)
    if len(paths) <= _FEW:
        paths += sorted(folders, reverse=True)
    else:  # at once, so that they share what the file system does for each: 26 files in 0.09 s instead of 0.17
        from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 (a small commit needs none)

        with ThreadPoolExecutor(_AT_ONCE) as threads:
            list(threads.map(sync, paths))
        paths = sorted(folders, reverse=True)
    list(map(sync, paths))


def _sync(path: Place, *, shared: bool) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        mode = os.fstat(handle).st_mode & 0o777
        if not shared and mode & 0o077:
            os.fchmod(handle, mode & 0o700)
        os.fsync(handle)
    finally:
        os.close(handle)
