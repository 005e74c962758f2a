"""Reading about runlake itself: its wires, its columns, its reasons to refuse, its version."""
# ruff: noqa: PLC0415

from __future__ import annotations

from typing import Annotated, Literal

import typer

from analytics.commands.options import FormatOption, FormulasOption, OutOption, Output, emit

SchemaPart = Literal["event", "refusal", "source", "piece", "reasons", "topics", "secrets"]


def wires(format_: FormatOption = None, out: OutOption = None, formulas: FormulasOption = "escape") -> None:
    """The wires (formats of streams) runlake reads, in the order it tries them."""
    import pyarrow as pa

    from analytics.wires import WIRES, wire

    rows = pa.table(
        {
            "wire": [row.name for row in WIRES],
            "reads": [wire(row.name).summary for row in WIRES],
            "shapes": [list(row.shapes) for row in WIRES],
        }
    )
    emit(rows, Output(format_, out, formulas))


def schema(
    part: Annotated[SchemaPart | None, typer.Argument(help="One list only.", show_default=False)] = None,
    format_: FormatOption = None,
    out: OutOption = None,
    formulas: FormulasOption = "escape",
) -> None:
    """The lake's columns and what they mean; `reasons`: why lines are refused; `secrets`: what is redacted."""
    import pyarrow as pa

    from analytics.refusals import REASONS
    from analytics.schema import PIECE, RECORDS, TOPICS, Column, arrow_type

    if part == "reasons":
        rows = pa.table(
            {
                "reason": [reason.name for reason in REASONS],
                "seen": [reason.seen for reason in REASONS],
                "remedy": [reason.remedy for reason in REASONS],
            }
        )
    elif part == "secrets":
        from analytics.redact import RULES

        rows = pa.table({"label": [rule.label for rule in RULES], "what": [rule.what for rule in RULES]})
    elif part == "topics":
        rows = pa.table({"topic": list(TOPICS), "meaning": list(TOPICS.values())})
    else:
        lists: list[tuple[str, tuple[Column, ...]]] = [*RECORDS.items(), ("piece", PIECE)]
        found = [(name, c) for name, columns in lists if part in (None, name) for c in columns]
        rows = pa.table(
            {
                "record": [name for name, _ in found],
                "column": [c.name for _, c in found],
                "type": [_type_name(str(arrow_type(c.type))) for _, c in found],
                "meaning": [c.meaning for _, c in found],
            }
        )
    emit(rows, Output(format_, out, formulas))


def _type_name(arrow: str) -> str:
    """Arrow's name of a type; a list of structs without its fields, which are listed as `piece`."""
    return "list<struct>" if arrow.startswith("list<item: struct") else arrow.replace("item: ", "")


def version() -> None:
    """The version of runlake and of what reads and writes for it."""
    from importlib.metadata import version as installed
    from platform import python_version

    import analytics

    typer.echo(f"runlake {analytics.__version__}")
    engines = ", ".join(f"{name} {installed(name)}" for name in ("duckdb", "pyarrow", "deltalake", "polars"))
    typer.echo(f"Python {python_version()}, {engines}")
