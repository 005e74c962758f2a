"""Reports of one's own: `.sql` files in a folder, with the header that the built-in ones have.

    -- Dear runs
    -- row: one run
    -- param: min_cost DOUBLE 0.5
    -- picture: bar run_id cost_usd
    SELECT run_id, cost_usd FROM run_metrics WHERE cost_usd >= getvariable('min_cost') ORDER BY cost_usd DESC

The text stays as it is: a parameter reaches it as a DuckDB variable, and it runs in the sandbox of `runlake sql`. What
is wrong in a header is told with the file and the line.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from analytics import sqlfiles
from analytics.errors import QueryFileError, RunlakeError, UsageError
from analytics.pictures import pictures
from analytics.sqlfiles import SqlFile

VARIABLE = "RUNLAKE_REPORTS"
TAKEN = frozenset({
    "event_files", "refusal_files", "source_files", "lake_version", "only_wire", "only_run", "since", "until"
})  # fmt: skip

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_KEYED = re.compile(r"--\s*([A-Za-z][A-Za-z ]{0,15}?)\s*:(.*)")
_PARAM = re.compile(r"--\s*param:\s*(.*)", re.IGNORECASE)
_TRUTH = {"true": True, "false": False, "yes": True, "no": False, "1": True, "0": False}


def _truth(text: str) -> bool:
    return _TRUTH[text.lower()]


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


TYPES: dict[str, tuple[Callable[[str], Any], str]] = {
    "BIGINT": (int, "a whole number"),
    "DOUBLE": (float, "a number"),
    "VARCHAR": (str, "a text"),
    "BOOLEAN": (_truth, "true or false"),
    "DATE": (date.fromisoformat, "a date such as 2026-09-01"),
    "TIMESTAMPTZ": (_moment, "a time such as 2026-09-01T12:00:00Z"),
}


@dataclass(frozen=True, slots=True)
class Parameter:
    """A value that a report asks for; `default` None: it must be given."""

    name: str
    type: str
    default: Any

    def read(self, text: str) -> Any:
        """The value that a text names."""
        read, what = TYPES[self.type]
        try:
            return read(text.strip() if self.type != "VARCHAR" else text)
        except (ValueError, KeyError):
            raise UsageError(f"The parameter {self.name} is {what} ({self.type}), not {text!r}.") from None


def folder_of(given: str | os.PathLike[str] | None) -> Path | None:
    """Where one's own reports are: the folder given, else RUNLAKE_REPORTS, else nowhere."""
    named = os.environ.get(VARIABLE)
    return Path(given) if given is not None else Path(named) if named else None


def load(folder: Path, built_in: Sequence[str]) -> dict[str, SqlFile]:
    """The reports in a folder, by name. Each fault is a usage error with the file (and line)."""
    try:
        paths = sorted(path for path in folder.iterdir() if path.suffix == ".sql" and not path.name.startswith("."))
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        said = f"The folder of reports {folder} cannot be read: {why}. Name one that holds .sql files."
        raise UsageError(said) from None
    made: dict[str, SqlFile] = {}
    for path in paths:
        if path.stem in built_in:
            raise UsageError(f"{path} has the name of a built-in report or relation. Give the file another name.")
        if not _NAME.fullmatch(path.stem):
            raise UsageError(
                f"{path} cannot name a report: a name is small letters, digits and _, such as dear_runs.sql."
            )
        try:
            file = sqlfiles.read(path, "reports")
        except QueryFileError:
            raise _unreadable(path) from None
        _check(file)
        made[path.stem] = file
    return made


def _unreadable(path: Path) -> UsageError:
    """Why a file of one's own cannot be read."""
    try:
        path.read_bytes().decode()
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        byte = error.object[error.start]
        return UsageError(f"{path}, line {line}: the byte 0x{byte:02x} is not UTF-8. Re-encode the file.")
    except OSError as error:
        return UsageError(f"{path} cannot be read: {(error.strerror or str(error)).lower()}.")
    return UsageError(f"{path} could not be read. Try again.")


@contextmanager
def naming(file: SqlFile) -> Iterator[None]:
    """What goes wrong with the SQL of one's own report is told with its file, also while rows are fetched."""
    try:
        yield
    except RunlakeError as error:
        raise error if str(file.path) in str(error) else type(error)(f"{file.path}: {error}") from error
    except Exception as error:
        import duckdb  # noqa: PLC0415 (loaded already where a query failed)

        if not isinstance(error, duckdb.Error):
            raise
        from analytics.readsonly import explain  # noqa: PLC0415

        explained = explain(error)
        raise type(explained)(f"{file.path}: {explained}") from error


def _check(file: SqlFile) -> None:
    """The header must say what it means to say."""
    lines = _header(file.text)
    if not file.title or ":" in lines[0].split("title:", 1)[-1]:
        raise _fault(file, 1, "the first line is to be a title, such as `-- Dear runs`")
    for number, line in enumerate(lines, 1):
        keyed = _KEYED.fullmatch(line)
        if keyed is None or keyed[1].lower() in sqlfiles.HEADER_KEYS:
            continue
        near = get_close_matches(keyed[1].lower(), sqlfiles.HEADER_KEYS, n=1, cutoff=0.7)
        if near:
            raise _fault(file, number, f"{keyed[1]!r} is no key of a header. Did you mean {near[0]!r}?")
    place = next((n for n, line in enumerate(lines, 1) if re.match(r"--\s*picture:", line, re.IGNORECASE)), 1)
    try:
        pictures(file.picture)
    except UsageError as error:
        raise _fault(file, place, str(error)) from None
    parameters(file)
    if file.relation is not None:
        raise _fault(file, len(lines) + 1, "a report of one's own is one SELECT; it creates nothing")


def _header(text: str) -> list[str]:
    lines: list[str] = []
    for line in text.splitlines():
        if not line.startswith("--"):
            break
        lines.append(line.rstrip())
    return lines or [""]


def _fault(file: SqlFile, line: int, what: str) -> UsageError:
    return UsageError(f"{file.path}, line {line}: {what}{'' if what.endswith(('.', '?')) else '.'}")


def parameters(file: SqlFile) -> dict[str, Parameter]:
    """What a report asks for: the lines `-- param: NAME TYPE [DEFAULT]` of its header."""
    found: dict[str, Parameter] = {}
    for number, line in enumerate(_header(file.text), 1):
        said = _PARAM.fullmatch(line)
        if said is None:
            continue
        name, kind, default = (*said[1].split(None, 2), "", "", "")[:3]
        if not _NAME.fullmatch(name) or not kind:
            raise _fault(file, number, "a parameter is written `-- param: NAME TYPE [DEFAULT]`")
        if name in TAKEN or name in found:
            raise _fault(file, number, f"the name {name!r} is taken. Give the parameter another")
        if kind.upper() not in TYPES:
            raise _fault(file, number, str(UsageError.unknown_name("type of a parameter", kind, list(TYPES))))
        parameter = Parameter(name, kind.upper(), None)
        try:
            found[name] = Parameter(name, kind.upper(), parameter.read(default) if default else None)
        except UsageError as error:
            raise _fault(file, number, str(error)) from None
    return found


def bound(file: SqlFile, given: Mapping[str, Any]) -> list[tuple[str, Parameter, Any]]:
    """Each parameter of a report and its value: the one given, else its default. Those of others are passed over."""
    made = []
    for name, parameter in parameters(file).items():
        said = given.get(name)
        value = parameter.default if said is None else parameter.read(said if isinstance(said, str) else str(said))
        if value is None:
            raise UsageError(
                f"The report {file.name} asks for {name} ({parameter.type}): give --set {name}=VALUE "
                f"(in Python, set={{'{name}': …}})."
            )
        made.append((name, parameter, value))
    return made


def settings(given: Sequence[str]) -> dict[str, str]:
    """`NAME=VALUE` of --set, by name."""
    made: dict[str, str] = {}
    for word in given:
        name, equals, value = word.partition("=")
        if not equals or not _NAME.fullmatch(name):
            raise UsageError(f"--set takes NAME=VALUE, such as --set min_cost=1.0, not {word!r}.")
        made[name] = value
    return made


def unknown(given: Mapping[str, Any], files: Sequence[SqlFile]) -> None:
    """A usage error for a parameter that none of the reports asks for."""
    known = {name for file in files for name in parameters(file)}
    for name in given:
        if name not in known:
            raise UsageError.unknown_name("parameter", name, sorted(known))
