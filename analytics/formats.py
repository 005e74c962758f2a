"""The output formats, as data; apart from `export` so that `runlake --help` does not wait for Arrow."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, get_args

from analytics.errors import UsageError

Format = Literal["table", "json", "jsonl", "csv", "parquet", "md", "html"]
Formulas = Literal["escape", "raw"]

FORMATS: tuple[Format, ...] = get_args(Format)
SUFFIXES: dict[str, Format] = {
    ".json": "json", ".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".parquet": "parquet", ".md": "md",
    ".html": "html", ".txt": "table",
}  # fmt: skip


def format_of(named: Format | None, out: Path | None) -> Format:
    """The format asked for, else the one the file's suffix says, else a table."""
    if named is not None:
        return named
    if out is None or out.suffix.lower() in ("", ".txt"):
        return "table"
    if out.suffix.lower() not in SUFFIXES and not out.is_dir():
        raise UsageError(
            f"No format has the suffix {out.suffix!r}. Use one of {', '.join(SUFFIXES)}, or give --format."
        )
    return SUFFIXES.get(out.suffix.lower(), "table")
