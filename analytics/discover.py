"""What there is to read: files, folders, globs, streams, objects. Only names and `stat`; nothing is opened.

A source is named by its real path, so a file that is reached in two ways is found once. Names are kept as the file
system gives them (surrogate escapes for bytes that are not UTF-8); `display` is what is stored and shown.
"""

from __future__ import annotations

import fnmatch
import os
import re
import stat
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from analytics.places import is_remote

SUFFIXES = (".jsonl", ".ndjson", ".json", ".log", ".txt")
COMPRESSED = (".gz", ".zst")
TAKEN = tuple(plain + packed for plain in SUFFIXES for packed in ("", *COMPRESSED))
LAKE_MARK = "_delta_log"
OUTPUTS = "tool-results"  # beside a Claude Code session: what tools printed, be it a transcript, is none of a run
NOTES = ".meta.json"
_SPECIAL = {stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}


@dataclass(frozen=True, slots=True)
class Found:
    """One source: a file, or a stream (stdin, an explicitly named FIFO or device) of unknown size."""

    path: str
    size: int
    mtime_ns: int
    inode: int
    kind: Literal["file", "stream"] = "file"

    @property
    def display(self) -> str:
        """The path as text: bytes that are not UTF-8 are backslash-escaped."""
        return display(self.path)


@dataclass(frozen=True, slots=True)
class Problem:
    """A path that is not read, and why. `is_error`: it was meant to be read and could not."""

    path: str
    reason: str
    is_error: bool = True

    @property
    def display(self) -> str:
        """The path as text."""
        return display(self.path)


@dataclass(slots=True)
class Discovery:
    """Everything found, sorted by path. `listed` are the folders wholly listed: what is missing there is gone."""

    found: list[Found] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    listed: list[str] = field(default_factory=list)
    unlisted: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    ignored: int = 0


def display(path: str) -> str:
    """A path as text that can be stored and printed."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def inode_of(info: os.stat_result) -> int:
    """The inode in 63 bits: some FUSE file systems use all 64, and the lake's integers have a sign."""
    return info.st_ino & 0x7FFF_FFFF_FFFF_FFFF


def found_at(path: str) -> Found | None:
    """What is found at a path that was found before; None where there is no file any more."""
    if is_remote(path):
        from analytics import objectsources  # noqa: PLC0415 (0.5 s; what stands in folders needs none of it)

        return objectsources.found_at(path)
    try:
        info = os.stat(path)
    except OSError:
        return None
    return Found(path, info.st_size, info.st_mtime_ns, inode_of(info)) if stat.S_ISREG(info.st_mode) else None


def discover(given: Iterable[str | os.PathLike[str]]) -> Discovery:
    """Finds what the given paths name: `-`, files whatever their name, folders (recursively), and quoted globs."""
    search = _Search()
    for one in given:
        search.take(os.fspath(one))
    result = search.result
    result.found = sorted(search.taken.values(), key=lambda f: os.fsencode(f.path))
    result.problems = sorted(set(result.problems), key=lambda p: (os.fsencode(p.path), p.reason))
    result.listed.sort()
    return result


class _Search:
    def __init__(self) -> None:
        self.result = Discovery()
        self.taken: dict[str, Found] = {}
        self._walked: set[str] = set()
        self._lakes: dict[str, bool] = {}

    def take(self, path: str) -> None:
        """One path as the user gave it."""
        if path == "-":
            self.taken["-"] = Found("-", 0, 0, 0, "stream")
        elif is_remote(path):
            from analytics import objectsources  # noqa: PLC0415 (0.5 s; what stands in folders needs none of it)

            objectsources.take(path, self.result, self.taken)
        elif os.path.lexists(path):
            self._take_named(path, is_from_glob=False)
        elif re.search(r"[*?\[]", path):
            matches = _glob(path, self.result)
            for match in matches:
                self._take_named(match, is_from_glob=True)
            if not matches:
                self._refuse(path, "no file matches the pattern")
        else:
            self._refuse(os.path.abspath(path), "there is no such file or folder")
            self.result.missing.append(os.path.realpath(path))

    def _take_named(self, path: str, *, is_from_glob: bool) -> None:
        """A path that was named, itself or by a glob: links are followed and any suffix is good."""
        try:
            info = os.stat(path)
        except OSError as error:
            self.result.problems.append(_problem(path, error))
            return
        real = os.path.realpath(path)
        if stat.S_ISDIR(info.st_mode):
            if self._is_in_lake(real):
                self._refuse(real, "it is a lake (a Delta table), or inside one", is_error=not is_from_glob)
            else:
                self.result.listed.append(real)
                self._walk(real)
        elif stat.S_ISREG(info.st_mode):
            if not (is_from_glob and self._is_in_lake(os.path.dirname(real))):
                self._add(real, info)
        elif is_from_glob or stat.S_ISSOCK(info.st_mode) or stat.S_ISBLK(info.st_mode):
            self.result.problems.append(_special(path, info.st_mode))
        else:
            stream = os.path.abspath(path)
            self.taken[stream] = Found(stream, 0, 0, inode_of(info), "stream")

    def _walk(self, root: str) -> None:
        """All files of a folder that could be sources. Linked folders are not entered, so no loop can catch us."""
        pending = [root]
        while pending:
            folder = pending.pop()
            if folder in self._walked:
                continue
            self._walked.add(folder)
            try:
                with os.scandir(folder) as entries:
                    here = list(entries)
            except OSError as error:
                self.result.unlisted.append(folder)
                self.result.problems.append(_problem(folder, error))
                continue
            if any(entry.name == LAKE_MARK for entry in here):
                self._refuse(folder, "it is a lake (a Delta table)", is_error=False)
                continue
            for entry in here:
                try:
                    if entry.is_dir(follow_symlinks=False):
                        if entry.name == OUTPUTS and os.path.exists(folder + ".jsonl"):
                            self.result.ignored += len(os.listdir(entry.path))
                        else:
                            pending.append(entry.path)
                    elif entry.name.endswith(NOTES) and os.path.exists(entry.path.removesuffix(NOTES) + ".jsonl"):
                        self.result.ignored += 1  # what Claude Code notes of a subagent's file beside it
                    elif entry.name.lower().endswith(TAKEN):
                        self._take_entry(entry)
                    else:
                        self.result.ignored += 1
                except OSError as error:
                    self.result.problems.append(_problem(entry.path, error))

    def _take_entry(self, entry: os.DirEntry[str]) -> None:
        if not entry.is_symlink():
            real, info = entry.path, entry.stat(follow_symlinks=False)
        else:
            real, info = os.path.realpath(entry.path), os.stat(entry.path)
            if stat.S_ISDIR(info.st_mode):
                self._refuse(entry.path, "a link to a folder is not followed", is_error=False)
                return
            if self._is_in_lake(os.path.dirname(real)):
                return
        if stat.S_ISREG(info.st_mode):
            self._add(real, info)
        else:
            self.result.problems.append(_special(entry.path, info.st_mode))

    def _add(self, real: str, info: os.stat_result) -> None:
        self.taken[real] = Found(real, info.st_size, info.st_mtime_ns, inode_of(info))

    def _refuse(self, path: str, reason: str, *, is_error: bool = True) -> None:
        self.result.problems.append(Problem(path, reason, is_error))

    def _is_in_lake(self, folder: str) -> bool:
        """True: the folder is a lake, or stands inside one."""
        if folder not in self._lakes:
            above = os.path.dirname(folder)
            is_mark = os.path.basename(folder) == LAKE_MARK
            here = is_mark or os.path.isdir(os.path.join(folder, LAKE_MARK))
            self._lakes[folder] = here or (above != folder and self._is_in_lake(above))
        return self._lakes[folder]


def _special(path: str, mode: int) -> Problem:
    what = _SPECIAL.get(stat.S_IFMT(mode), "no regular file")
    hint = "; name it itself to read it" if stat.S_ISFIFO(mode) else ""
    return Problem(path, f"{what} is not read{hint}", is_error=False)


def _problem(path: str, error: OSError) -> Problem:
    words = error.strerror or str(error)
    if isinstance(error, FileNotFoundError):
        words = "the link leads nowhere" if os.path.islink(path) else "it vanished while it was being listed"
    return Problem(path, words[:1].lower() + words[1:])


def _glob(pattern: str, result: Discovery) -> list[str]:
    """Paths that match a pattern. Unlike the library's glob: hidden names match, and `**` enters no linked folder."""
    parts = pattern.split("/")
    plain = next(at for at, part in enumerate(parts) if re.search(r"[*?\[]", part))
    bases = ["/".join(parts[:plain]) + "/" if plain else ""]
    for at in range(plain, len(parts)):
        part = parts[at]
        if not part:
            continue
        is_last = not any(parts[at + 1 :])
        if part == "**":
            bases = [below for base in bases for below in (base, *_below(base, result))]
        else:
            match = re.compile(fnmatch.translate(part)).match
            bases = [
                entry.path if is_last else entry.path + "/"
                for base in bases
                for entry in _entries(base, result)
                if match(entry.name) and (is_last or _is_folder(entry))
            ]
    return sorted({base.rstrip("/") or base for base in bases if base})


def _below(base: str, result: Discovery) -> list[str]:
    found = []
    pending = [base]
    while pending:
        for entry in _entries(pending.pop(), result):
            if entry.is_dir(follow_symlinks=False):
                found.append(entry.path + "/")
                pending.append(entry.path + "/")
    return found


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _entries(base: str, result: Discovery) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(base or ".") as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except NotADirectoryError:
        return []
    except OSError as error:
        result.unlisted.append(os.path.realpath(base or "."))
        result.problems.append(_problem(base or ".", error))
        return []
