"""The relations of `queries/`: what each reads, and how a query gets those it needs put before it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from analytics import sqlfiles

# what holds the lake's rows as they are: kept apart, these would copy the lake into memory
INLINED = ("stored_events", "stored_refusals", "sources", "events", "refusals")

_COMMENT = re.compile(r"--[^\n]*")
_VIEW = re.compile(r"^CREATE OR REPLACE VIEW \w+ AS\s(.*?);?\s*\Z", re.DOTALL | re.MULTILINE)
_BEGIN = re.compile(
    r"((?:\s|--[^\n]*\n|/\*.*?\*/)*)(SELECT|FROM|VALUES|WITH(?=\s))(?:\s+(RECURSIVE\s))?", re.DOTALL | re.IGNORECASE
)
_TABLE = re.compile(r"\b(?:from|join)\s+([a-z_][a-z0-9_]*)")
_WORD = re.compile(r"[a-z_][a-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Relation:
    """What one file of `queries/` creates, the query inside (None: not a view), and the other relations it reads."""

    text: str
    query: str | None
    builds_on: frozenset[str]

    def as_view(self, *, temporary: bool = False) -> str:
        """The statement that makes it a view, bound when it is asked for: binding all of them takes seconds."""
        text = re.sub(r"VIEW (\w+) AS", r"VIEW \1 WITH (DEFER_BINDING) AS", self.text, count=1)
        return text.replace("OR REPLACE VIEW", "OR REPLACE TEMP VIEW", 1) if temporary else text


@cache
def relations() -> dict[str, Relation]:
    """All relations by name, each after those it builds on."""
    texts = {file.relation: file.text for file in sqlfiles.load() if file.relation is not None}
    made = {}
    for name, text in texts.items():
        view = _VIEW.search(text)
        builds_on = frozenset(set(_TABLE.findall(_COMMENT.sub(" ", text).lower())) & texts.keys() - {name})
        made[name] = Relation(text, view[1] if view else None, builds_on)
    return made


def words_of(sql: str) -> set[str]:
    """Every word of a query that could be a relation's name: rather one too many than one too few."""
    return set(_WORD.findall(sql.lower()))


def closure(names: Iterable[str], instead: Mapping[str, Relation] | None = None) -> dict[str, Relation]:
    """The relations among the names and all they build on, each after those it builds on.

    `instead`: what stands for relations of the same names.
    """
    known = {**relations(), **(instead or {})}
    wanted: set[str] = set()
    following = {name for name in names if name in known}
    while following:
        wanted |= following
        following = {word for name in following for word in known[name].builds_on} - wanted
    return {name: relation for name, relation in known.items() if name in wanted}


def composed(sql: str, needed: Mapping[str, Relation]) -> str | None:
    """The query with the relations in front of it as WITH, or None where that cannot be.

    DuckDB binds a WITH once and a view once per mention: run_metrics over a small lake takes 0.15 s this way and
    0.55 s with views. What holds the events stays inlined: kept apart it would copy the lake into memory. What is
    mentioned several times is computed once by our word: left to itself, DuckDB inlines it all under ORDER BY and
    LIMIT, and plans run_metrics for two minutes.
    """
    begin = _BEGIN.match(sql)
    queries = {name: relation.query for name, relation in needed.items()}
    if begin is None or not queries or None in queries.values():
        return None
    texts = (_COMMENT.sub("", text or "").lower() for text in (*queries.values(), sql))
    mentions = Counter(word for text in texts for word in _WORD.findall(text))
    parts = [f"{name} AS {_kept(name, mentions[name])} (\n{query}\n)" for name, query in queries.items()]
    comments, word, recursive = begin.groups(default="")
    chain = f"WITH {recursive}" + ",\n".join(parts)
    return f"{comments}{chain},\n{sql[begin.end() :]}" if word.upper() == "WITH" else f"{chain}\n{sql}"


def _kept(name: str, mentions: int) -> str:
    if name in INLINED:
        return "NOT MATERIALIZED"
    return "MATERIALIZED" if mentions > 1 else ""
