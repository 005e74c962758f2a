"""Reports as one JSON document whose shape is promised: `schema_version` names the schema, which ships beside this.

Version 1 may gain properties, reports and columns; what is there keeps its name, type and meaning, else the version
rises. `analytics/_schema/export-1.json` is the JSON Schema (`runlake export --json-schema` prints it).
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources import files
from typing import IO, Any

from analytics.export import json_rows
from analytics.render import companions_of
from analytics.reportset import Report
from analytics.rows import Field
from analytics.values import as_json

SCHEMA_VERSION = 1


def write_document(reports: Iterable[Report], facts: dict[str, Any], to: IO[bytes]) -> None:
    """Writes the document. `facts`: lake_version, runlake_version, filters."""
    head = {"schema_version": SCHEMA_VERSION, **facts}
    to.write(as_json(head)[:-1] + b',"reports":{')
    for place, report in enumerate(reports):
        columns = _columns(report.rows.fields)
        described = as_json({"title": report.title, "one_row_is": report.row, "columns": columns})
        to.write((b",\n" if place else b"\n") + as_json(report.name) + b":" + described[:-1] + b',"rows":')
        json_rows(report.rows, to)
        to.write(b"}")
    to.write(b"\n}}\n")


def json_schema() -> bytes:
    """The JSON Schema of the documents that write_document writes."""
    return (files("analytics") / "_schema" / f"export-{SCHEMA_VERSION}.json").read_bytes()


def _columns(fields: list[Field]) -> list[dict[str, Any]]:
    """Name and kind of each column, and the column that says how far to trust it."""
    flags = companions_of([field.name for field in fields])
    columns = []
    for field in fields:
        column: dict[str, Any] = {"name": field.name, "kind": field.kind}
        if field.name in flags:
            flag = flags[field.name]
            column["flag"] = {"column": flag.flag, "marks_when": flag.marks, "as": flag.as_.replace(" ", "_")}
        columns.append(column)
    return columns
