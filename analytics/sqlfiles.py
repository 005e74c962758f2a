"""The files of queries/: where they are, in which order they load, what their headers say, and what becomes of them.

The SQL is the product's own text: a person can run each file in the DuckDB shell. So this module only reads, orders
and concatenates; it never changes a statement. `views.sql` in a lake is all of the files in order, since a nested
`.read` resolves against the shell's folder and an installed wheel has no queries/ there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from analytics.errors import QueryFileError, UsageError
from analytics.schema import Record

HEADER_KEYS = ("title", "row", "from", "unknown", "not counted", "by", "params", "param", "picture")
_FULL_LINE = 100
_HEADER = re.compile(rf"--\s*({'|'.join(HEADER_KEYS)}):\s*(.*)", re.IGNORECASE)
_MADE = re.compile(
    r"^\s*CREATE\s+(?:OR\s+REPLACE\s+)?(?:TEMP\s+)?(?:VIEW|MACRO|TABLE)\s+(\w+)", re.IGNORECASE | re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class SqlFile:
    """One file of queries/. `relation` is what it creates; a report or check may be a bare SELECT."""

    path: Path
    layer: str
    name: str
    text: str
    title: str
    row: str
    source: str
    unknown: str
    not_counted: str
    by: tuple[str, ...]
    params: tuple[str, ...]
    picture: str
    notes: str
    relation: str | None


@cache
def folder() -> Path:
    """Where the SQL files are: beside the modules in a wheel, at the top of the repository in a checkout."""
    here = Path(__file__).resolve().parent
    looked = [here / "_queries", here.parent / "queries"]
    for place in looked:
        if (place / "all.sql").is_file():
            return place
    raise QueryFileError.no_folder(looked)


def load(place: Path | None = None) -> tuple[SqlFile, ...]:
    """The files that all.sql names, in its order. `place` is for tests; the folder of this installation else."""
    return _load(place or folder())


def in_layer(layer: str, place: Path | None = None) -> tuple[SqlFile, ...]:
    """The files of one folder (facts, metrics, …): those all.sql names in its order, then the others by name."""
    root = place or folder()
    ordered = [file for file in load(root) if file.layer == layer]
    named = {file.path for file in ordered}
    others = sorted(path for path in (root / layer).glob("*.sql") if path not in named)
    return (*ordered, *(read(path, layer) for path in others))


def find(layer: str, name: str, place: Path | None = None) -> SqlFile:
    """One file of a folder by its name."""
    files = {file.name: file for file in in_layer(layer, place)}
    if name not in files:
        raise UsageError.unknown_name(layer.removesuffix("s"), name, list(files))
    return files[name]


@cache
def _load(place: Path) -> tuple[SqlFile, ...]:
    order = place / "all.sql"
    try:
        lines = order.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise QueryFileError.unreadable(order, str(error.strerror)) from error
    files = []
    for line in lines:
        text = line.strip()
        if text.startswith(".read "):
            relative = text.removeprefix(".read ").strip().strip("'\"").removeprefix("queries/")
            path = place / relative
            files.append(read(path, path.parent.name))
        elif text and not text.startswith("--"):
            raise QueryFileError.unreadable(order, f"{text!r} is neither a comment nor `.read queries/…`")
    return tuple(files)


@cache
def read(path: Path, layer: str) -> SqlFile:
    """One file and what its header says. The header is the block of comments the file begins with."""
    try:
        text = path.read_text(encoding="utf-8-sig")  # editors put a byte order mark before reports of one's own
    except (OSError, UnicodeDecodeError) as error:
        raise QueryFileError.unreadable(path, str(error)) from error
    said = header(text)
    made = _MADE.search(text)
    return SqlFile(
        path=path, layer=layer, name=path.stem, text=text, title=said.get("title", ""), row=said.get("row", ""),
        source=said.get("from", ""), unknown=said.get("unknown", ""), not_counted=said.get("not counted", ""),
        by=_words(said.get("by", "")), params=_words(said.get("params", "")), picture=said.get("picture", ""),
        notes=said.get("notes", ""),
        relation=made[1] if made else None,
    )  # fmt: skip


def header(text: str) -> dict[str, str]:
    """Key and text of each header line.

    The first line is the title; a line without a key goes on with the key before it. After the last key such lines
    are the notes, unless the line before is full and its sentence open.
    """
    block = []
    for line in text.splitlines():
        if line.startswith("--"):
            block.append(line)
        elif line.strip():
            break
    keyed = [at for at, line in enumerate(block) if _HEADER.match(line)]
    said: dict[str, str] = {}
    key = "title"
    for at, line in enumerate(block):
        found = _HEADER.match(line)
        if found:
            key = found[1].lower()
        elif keyed and at > keyed[-1] and (len(block[at - 1]) < _FULL_LINE or block[at - 1].rstrip().endswith(".")):
            key = "notes"
        words = found[2] if found else line[2:]
        said[key] = f"{said.get(key, '')} {words.strip()}".strip()
    return said


def _words(text: str) -> tuple[str, ...]:
    return tuple(word for word in re.split(r"[,\s]+", text) if word and word not in ("-", "none"))


def quoted(text: str) -> str:
    """A SQL string literal."""
    return "'" + text.replace("'", "''") + "'"


def variables(files: Mapping[Record, Sequence[str]]) -> list[str]:
    """The statements that pin the files of one version."""
    return [
        f"SET VARIABLE {record}_files = [\n  " + ",\n  ".join(quoted(path) for path in paths) + "\n];"
        for record, paths in files.items()
    ]


def open_sql(files: Mapping[Record, Sequence[str]], version: int) -> str:
    """open.sql of a lake: with it a DuckDB shell in any folder reads one committed version."""
    first = f"-- Version {version} of this lake; any runlake command brings it up to date. Next, .read views.sql."
    settings = ["SET TimeZone = 'UTC';", "SET parquet_metadata_cache = true;"]  # each view opens every file's footer
    return "\n".join([first, *settings, f"SET VARIABLE lake_version = {version};", *variables(files), ""])


def version_of(text: str | None) -> int:
    """The version an open.sql was written for; -1 where it does not say."""
    found = re.search(r"^SET VARIABLE lake_version = (\d+);", text or "", re.MULTILINE)
    return int(found[1]) if found else -1


def views_sql(place: Path | None = None) -> str:
    """views.sql of a lake: every file of queries/ in load order."""
    parts = ["-- All of runlake's queries in load order; read open.sql first.\n"]
    for file in load(place):
        text = file.text.strip()
        end = "" if text.endswith(";") or not text else "\n;"
        parts.append(f"-- {file.layer}/{file.path.name}\n{text}{end}\n")
    return "\n".join(parts)
