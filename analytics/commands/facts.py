"""A handful of facts as rows: one line per fact for people, one row for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from analytics.commands.options import Output
from analytics.render import UNKNOWN, duration

if TYPE_CHECKING:
    import pyarrow as pa

PLAIN = frozenset({"version"})


def as_rows(facts: dict[str, Any], output: Output) -> pa.Table:
    """The facts in the shape the format wants. A dict is a tally: lines below its name, or a map."""
    return _lines(facts) if output.chosen in ("table", "md") else _row(facts)


def _row(facts: dict[str, Any]) -> pa.Table:
    import pyarrow as pa  # noqa: PLC0415 (only commands that print facts need it)

    columns: dict[str, pa.Array] = {}
    for name, value in facts.items():
        if isinstance(value, dict):
            columns[name] = pa.array([list(value.items())], pa.map_(pa.string(), pa.int64()))
        else:
            columns[name] = pa.array([value], pa.int64() if value is None else None)
    return pa.table(columns)


def _lines(facts: dict[str, Any]) -> pa.Table:
    import pyarrow as pa  # noqa: PLC0415 (the same)

    lines: list[tuple[str, str | int]] = []
    for name, value in facts.items():
        if isinstance(value, dict):
            lines += [(f"  {key}", count) for key, count in sorted(value.items())]
        elif name.endswith("_ms"):
            lines.append((name.removesuffix("_ms"), duration(value)))
        else:
            lines.append((name.replace("_", " "), UNKNOWN if value is None else str(value) if name in PLAIN else value))
    width = max((len(f"{value:,}") for _, value in lines if isinstance(value, int)), default=0)
    values = [f"{value:>{width},}" if isinstance(value, int) else value for _, value in lines]
    return pa.table({"what": [name for name, _ in lines], "value": values})
