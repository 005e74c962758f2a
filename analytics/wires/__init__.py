"""The registry: one row per wire. A new wire is one file here, one fixture folder and one row below."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from analytics.wires.base import Sample, Wire


@dataclass(frozen=True, slots=True)
class Row:
    """A wire: its name, its module, its shapes (the first is read when only the wire is named by hand)."""

    name: str
    module: str
    shapes: tuple[str, ...]
    documents: tuple[str, ...] = ()  # the shapes that are one JSON document instead of lines


# order matters for sniffing: the most specific envelope first
WIRES: tuple[Row, ...] = (
    Row("metaharness", "analytics.wires.metaharness", ("events",)),
    Row("platonic-core", "analytics.wires.platonic_core", ("record", "ledger", "event")),
    Row("harness-lab", "analytics.wires.harness_lab", ("generic", "events", "export"), documents=("export",)),
    Row("claude-stream", "analytics.wires.claude_stream", ("stream",)),
    Row("codex-exec", "analytics.wires.codex_exec", ("items", "msg")),
    Row("codex-rollout", "analytics.wires.codex_rollout", ("rollout", "bare")),
    Row("claude-code", "analytics.wires.claude_code", ("session",)),
)
BY_NAME: dict[str, Row] = {row.name: row for row in WIRES}


def wire(name: str) -> Wire:
    """The wire of that name. Raises KeyError with the known names."""
    if name not in BY_NAME:
        raise KeyError(f"no wire is called {name!r}; known wires: {', '.join(BY_NAME)}")
    made: Wire = import_module(BY_NAME[name].module).WIRE
    return made


def sniff(sample: Sample) -> tuple[str, str] | None:
    """(wire, shape) of a sample, by content alone; None if no wire knows it."""
    for row in WIRES:
        shape = wire(row.name).sniff(sample)
        if shape is not None:
            return row.name, shape
    return None
