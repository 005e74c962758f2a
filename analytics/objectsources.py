"""What there is to read in an object store: objects, prefixes, globs; the rules are those of `analytics.discover`.

Only listings; nothing is opened. An object is named by its whole path, whatever host asks, so it is one source to all
of them. Its ETag stands for an inode: it changes whenever the object is written anew.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import xxhash

from analytics import objects
from analytics.discover import LAKE_MARK, NOTES, OUTPUTS, TAKEN, Discovery, Found, Problem
from analytics.places import normal
from analytics.remotelake import modified

_MAGIC = re.compile(r"[*?\[]")
_SECOND_NS = 1_000_000_000


def stat_of(info: Mapping[str, Any]) -> tuple[int, int, int]:
    """Size, time of change (ns, whole seconds as HTTP has them), and 63 bits of the ETag's digest."""
    tag = next((str(info[name]) for name in ("ETag", "etag", "md5Hash", "generation") if info.get(name)), "")
    inode = xxhash.xxh3_64_intdigest(tag.strip('"').encode()) & 0x7FFF_FFFF_FFFF_FFFF if tag else 0
    return int(info["size"]), int(modified(dict(info))) * _SECOND_NS, inode


def found_at(path: str) -> Found | None:
    """One object; None where there is none, or the store does not say."""
    try:
        info = objects.info_of(path)
    except OSError:
        return None
    return None if info is None else _found(path, info)


def is_there(path: str) -> bool:
    """False only if the store says that there is no such object."""
    try:
        return objects.info_of(path) is not None
    except OSError:
        return True


def found_beside(paths: Iterable[str]) -> dict[str, Found]:
    """What the stores have of these paths: a listing for each prefix they stand in. Raises OSError."""
    wanted = set(paths)
    found: dict[str, Found] = {}
    listed: list[str] = []
    for prefix in sorted({path.rsplit("/", 1)[0] for path in wanted}):
        if any(prefix.startswith(f"{other}/") for other in listed):
            continue
        listed.append(prefix)
        found |= {path: _found(path, info) for path, info in objects.listed(prefix).items() if path in wanted}
    return found


def take(path: str, result: Discovery, taken: dict[str, Found]) -> None:
    """One remote path as the user gave it: an object, a prefix (everything below it), or a glob."""
    path = normal(path)
    try:
        _take(path, result, taken)
    except OSError as error:
        result.problems.append(Problem(error.filename or path, error.strerror or str(error)))
        result.unlisted.append(path)


def _take(path: str, result: Discovery, taken: dict[str, Found]) -> None:
    if not _is_bucket(path):
        info = objects.info_of(path)
        if info is not None:
            taken[path] = _found(path, info)
            return
        if _MAGIC.search(path):
            _take_glob(path, result, taken)
            return
    if _is_in_lake(path):
        result.problems.append(Problem(path, "it is a lake (a Delta table), or inside one"))
        return
    below = objects.listed(path)
    if not below and not _is_bucket(path):
        result.problems.append(Problem(path, "there is no such object, and nothing below it"))
        result.missing.append(path)
    result.listed.append(path)  # also where nothing is left: a store has no empty folders
    _walk(below, result, taken)


def _take_glob(pattern: str, result: Discovery, taken: dict[str, Found]) -> None:
    parts = pattern.split("/")
    plain = next(at for at, part in enumerate(parts) if _MAGIC.search(part))
    base = "/".join(parts[:plain])
    wanted = [part for part in parts[plain:] if part]
    folders: dict[str, dict[str, Any]] = {}
    named: dict[str, dict[str, Any]] = {}
    below = objects.listed(base)
    for path, info in below.items():
        names = path[len(base) + 1 :].split("/")
        if wanted[-1] != "**" and _matches(names, wanted):
            named[path] = info
        elif any(_matches(names[:depth], wanted) for depth in range(len(names))):
            folders[path] = info
    if not named and not folders:
        result.problems.append(Problem(pattern, "no object matches the pattern"))
    lakes = _lakes(below)
    taken |= {path: _found(path, info) for path, info in named.items() if not _is_below(path, lakes)}
    _walk(folders, result, taken)


def _walk(below: Mapping[str, dict[str, Any]], result: Discovery, taken: dict[str, Found]) -> None:
    """All objects of a listing that could be sources."""
    lakes = _lakes(below)
    result.problems += [Problem(lake, "it is a lake (a Delta table)", is_error=False) for lake in lakes]
    for path, info in below.items():
        if path.endswith("/") or _is_below(path, lakes):
            continue
        is_note = path.endswith(NOTES) and path.removesuffix(NOTES) + ".jsonl" in below
        if is_note or _is_output(path, below) or not path.lower().endswith(TAKEN):
            result.ignored += 1
        else:
            taken[path] = _found(path, info)


def _is_output(path: str, below: Mapping[str, object]) -> bool:
    """True: it stands in a folder of tool outputs beside a session."""
    parts = path.split("/")
    return any(
        name == OUTPUTS and "/".join(parts[:at]) + ".jsonl" in below for at, name in enumerate(parts[:-1]) if at > 3
    )


def _lakes(paths: Iterable[str]) -> frozenset[str]:
    """The lakes among some objects."""
    mark = f"/{LAKE_MARK}/"
    return frozenset(path.split(mark, 1)[0] for path in paths if mark in path)


def _is_below(path: str, folders: frozenset[str]) -> bool:
    parts = path.split("/")
    return bool(folders) and any("/".join(parts[:depth]) in folders for depth in range(3, len(parts)))


def _is_in_lake(path: str) -> bool:
    """True: a lake stands at the path, or above it."""
    parts = path.split("/")
    above = ["/".join(parts[:depth]) for depth in range(3, len(parts) + 1)]
    first = f"{LAKE_MARK}/{0:020d}.json"
    return LAKE_MARK in parts or any(objects.info_of(f"{folder}/{first}") is not None for folder in above)


def _is_bucket(path: str) -> bool:
    return path.count("/") == 2


def _matches(names: Sequence[str], wanted: Sequence[str]) -> bool:
    """The names of a path match the parts of a pattern; `**` stands for any number of folders."""
    if not wanted:
        return not names
    if wanted[0] == "**":
        return any(_matches(names[skip:], wanted[1:]) for skip in range(len(names) + 1))
    return bool(names) and fnmatch.fnmatchcase(names[0], wanted[0]) and _matches(names[1:], wanted[1:])


def _found(path: str, info: Mapping[str, Any]) -> Found:
    return Found(path, *stat_of(info))
