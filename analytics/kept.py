"""What queries build on, computed once and kept as tables: for lakes where planning costs more than computing.

The main reports over the sample corpus (57 sources, 3,600 events): 2.0 CPU s as six queries of 12 to 17 relations each,
0.35 s this way, since a plan of many small queries is found faster than that of one large query, and what two reports
build on is planned once. Over 72,000 events it is 2.9 s against 0.8 s. Of a large lake nothing is kept: there a query
should see all it builds on, to leave out columns and rows it does not want.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from analytics.relations import INLINED, Relation

if TYPE_CHECKING:
    import duckdb

    from analytics.lake import Store

FEW_EVENTS = 200_000
FEW_BYTES = 64 << 20
HANDFUL_EVENTS = 10_000
HANDFUL_BYTES = 1 << 20

Keep = Literal["nothing", "facts", "all"]


def worth_keeping(store: Store) -> Keep:
    """What is kept of a version of a lake."""
    events, size = store.extent("event", "refusal")
    if events <= HANDFUL_EVENTS and size <= HANDFUL_BYTES:
        return "all"
    return "facts" if events <= FEW_EVENTS and size <= FEW_BYTES else "nothing"


class Kept:
    """The relations made so far for one set of filters. `is_shared`: by all connections, else by this one alone."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection, keep: Keep, *, is_shared: bool) -> None:
        self.cursor = cursor
        self.made: set[str] = set()
        self._views = frozenset(INLINED if keep == "facts" else ())
        self._is_shared = is_shared

    def make(self, wanted: Mapping[str, Relation]) -> None:
        """Computes the relations that are not there yet; each stands after those it builds on."""
        for name, relation in wanted.items():
            if name in self.made:
                continue
            if name in self._views or relation.query is None:
                self.cursor.execute(relation.as_view(temporary=not self._is_shared))
            else:
                self.cursor.execute(f"CREATE {'' if self._is_shared else 'TEMP '}TABLE {name} AS\n{relation.query}")
            self.made.add(name)
