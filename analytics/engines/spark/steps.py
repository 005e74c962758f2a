"""A query with WITH as several: what is mentioned more than once stands apart, to be computed once.

Spark puts the plan of a WITH in the place of each mention; where these mentions multiply, as in the joins of
piece_links, it plans for minutes what takes seconds.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from sqlglot import exp


@dataclass(frozen=True, slots=True)
class Step:
    """One query. `name`: the view that its rows become; the last has none. `is_kept`: it is mentioned several times."""

    name: str | None
    tree: exp.Expr
    is_kept: bool


def steps(name: str, tree: exp.Expr) -> list[Step]:
    """The query as steps, each of which may read the views of those before; `name` keeps their names apart."""
    with_ = tree.args.get("with_")
    if with_ is None or with_.args.get("recursive"):
        return [Step(None, tree, is_kept=False)]
    made: list[Step] = []
    mentions = _mentions(tree)
    renamed: dict[str, str] = {}
    for part in with_.expressions:
        alias = part.alias
        body = _with_names(part.this, renamed)
        renamed[alias] = f"{name}__{alias}"
        made.append(Step(renamed[alias], body, is_kept=mentions[alias] > 1))
    last = tree.copy()
    last.set("with_", None)
    return [*made, Step(None, _with_names(last, renamed), is_kept=False)]


def _mentions(tree: exp.Expr) -> Counter[str]:
    return Counter(table.name for table in tree.find_all(exp.Table))


def _with_names(tree: exp.Expr, renamed: dict[str, str]) -> exp.Expr:
    """The tree with views in the place of the parts of WITH; columns that name a part find it under its old name."""
    copy = tree.copy()
    hidden = {part.alias for part in copy.find_all(exp.CTE)}  # of a WITH inside, which has its own
    for table in list(copy.find_all(exp.Table)):
        view = renamed.get(table.name)
        if view is None or table.name in hidden:
            continue
        if not table.alias:
            table.set("alias", exp.TableAlias(this=exp.to_identifier(table.name)))
        table.set("this", exp.to_identifier(view))
    return copy
