"""The pages of docs/reference, made from the code: commands, columns, reasons, relations."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from analytics.sqlfiles import SqlFile

MADE = "<!-- Made from the code by `pytest tests/test_docs_reference.py --update`; do not edit. -->"
CLI = """\
Data goes to stdout, what is said about it to stderr. Exit codes: 0 done, 1 work failed or a check found something, 2
asked for what does not exist, 130 interrupted. `-h` after any command prints what stands here.
"""
SCHEMA = """\
Three kinds of records share one Delta table, told apart by the partition `record`: `event` is a fact of a line,
`refusal` a refused line or file, `source` a revision of an ingested file. NULL always means that the record did not
say. `runlake schema` prints the same.
"""
REFUSALS = """\
A refused line keeps its bytes, its place and one of these reasons; the other lines of its file are events.
`runlake refused` lists the refusals of a lake.
"""
VIEWS = """\
What `runlake sql`, `lake.sql()` and the DuckDB shell can ask, from the lake's rows up to the reports. Each is one file
in `queries/`, whose head says what stands here. NULL is unknown, never zero.
"""
LAYERS = {
    "lake": "The lake's files as rows, and which run each row belongs to.",
    "facts": "Events put together, without loss, the same for every wire.",
    "metrics": "The numbers.",
    "reports": "What `runlake report NAME [--by X]` prints; `NAME_by_X` is `--by X`.",
    "checks": "What must be empty: a row is a fault of the lake. `runlake check` runs them all.",
}


def table(head: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(_cell(cell) for cell in line) + " |\n" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _code(text: str) -> str:
    return f"`{' '.join(text.split())}`"


def cli(_lake: Any) -> str:
    """Every command with its arguments and options, as `--help` has them."""
    from typer.main import get_command

    from analytics.cli import app

    main = get_command(app)
    context = main.context_class(main, info_name="runlake")
    before = table(["before the command", "meaning"], _records(main, context))
    parts = [f"# Commands\n\n{MADE}\n\n{main.help}\n\n{CLI}\n{before}"]
    for name, command in main.commands.items():
        inner = command.context_class(command, info_name=name, parent=context)
        usage = " ".join(command.collect_usage_pieces(inner))
        parts.append(f"## runlake {name}\n\n{_code(f'runlake {name} {usage}')}\n\n{inspect.cleandoc(command.help)}\n")
        parts.append(table(["argument or option", "meaning"], _records(command, inner)))
    return "\n".join(parts)


def _records(command: Any, context: Any) -> list[list[str]]:
    records = [param.get_help_record(context) for param in command.get_params(context)]
    return [[_code(names), meaning] for names, meaning in filter(None, records) if "--help" not in names]


def schema(_lake: Any) -> str:
    """The columns of the record kinds."""
    from analytics.schema import END_RULES, KINDS, PIECE, RECORDS, SCHEMA_VERSION, TOPICS, USAGE_SCOPES, arrow_type

    version = f"The version of this schema is {SCHEMA_VERSION}."
    parts = [f"# Columns of the lake\n\n{MADE}\n\n{SCHEMA}\n{version}\n"]
    lists = [*RECORDS.items(), ("piece, an element of a source's runs", PIECE)]
    for name, columns in lists:
        rows = [[_code(c.name), _type(str(arrow_type(c.type))), c.meaning] for c in columns]
        parts.append(f"## {name}\n\n{table(['column', 'type', 'meaning'], rows)}")
    parts.append(f"## Kinds of events\n\n`kind` is one of {', '.join(map(_code, KINDS))}.\n")
    for title, words in (("usage_scope", USAGE_SCOPES), ("end_rule", END_RULES), ("speaks", TOPICS)):
        rows = [[_code(word), meaning] for word, meaning in words.items()]
        parts.append(f"## Words of {title}\n\n{table(['word', 'meaning'], rows)}")
    return "\n".join(parts)


def _type(arrow: str) -> str:
    return "list of structs" if arrow.startswith("list<item: struct") else arrow.replace("item: ", "")


def refusals(_lake: Any) -> str:
    """The reasons lines and files are refused for."""
    from analytics.refusals import REASONS

    rows = [[_code(reason.name), reason.seen, reason.remedy] for reason in REASONS]
    return f"# Reasons of refusals\n\n{MADE}\n\n{REFUSALS}\n{table(['reason', 'what was seen', 'what to do'], rows)}"


def views(lake: Any) -> str:
    """Every relation: the head of its file and its columns."""
    from analytics.sqlfiles import in_layer

    parts = [f"# Relations\n\n{MADE}\n\n{VIEWS}"]
    for layer, words in LAYERS.items():
        parts.append(f"## {layer}\n\n{words}\n")
        parts += [_relation(file, lake) for file in in_layer(layer)]
    return "\n".join(parts)


def _relation(file: SqlFile, lake: Any) -> str:
    query = f"FROM {file.relation}" if file.relation is not None else file.text.strip().rstrip(";")
    columns = [f"`{name}` {kind}" for name, kind, *_ in lake.sql(f"DESCRIBE {query}").fetchall()]
    by = ", ".join(map(_code, file.by))
    said = {
        "a row is": file.row, "made from": file.source, "unknown": file.unknown, "not counted": file.not_counted,
        "by": by, "picture": _code(file.picture) if file.picture else "", "note": file.notes,
        "columns": ", ".join(columns),
    }  # fmt: skip
    lines = [f"* {key}: {' '.join(text.split())}" for key, text in said.items() if text and text.strip() != "-"]
    path = f"../../queries/{file.layer}/{file.path.name}"
    title = f"{file.title}. " if file.title else ""
    return f"### {file.relation or file.name}\n\n{title}[SQL]({path})\n\n" + "\n".join(lines) + "\n"


PAGES = {"cli": cli, "schema": schema, "refusals": refusals, "views": views}
