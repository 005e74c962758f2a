"""Charts of reports: what the header's `picture:` says, drawn with Altair (the extra `runlake[report]`).

Columns are called x, y, c, … inside a chart, so that no name of a column, and no text of a stream, is ever read as
an expression or a path. Colours are Okabe and Ito's, told apart by colour-blind readers, too; on a page they are CSS
variables, so that light, dark and print need no second drawing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from analytics.errors import UsageError
from analytics.html.board import Drawing, altair, label
from analytics.html.kinds import Kinds
from analytics.pictures import Picture, fits, pictures
from analytics.rows import Field, rows_of

if TYPE_CHECKING:
    import duckdb

    from analytics.sqlfiles import SqlFile


def chart_of(file: SqlFile, relation: duckdb.DuckDBPyRelation, place: int = 0) -> Any:
    """The chart of one report's rows, in colours that stand by themselves (a notebook, a file)."""
    altair()
    drawn = pictures(file.picture)
    if not 0 <= place < len(drawn):
        what = "draws nothing" if not drawn else f"draws {len(drawn)}: 0 to {len(drawn) - 1}"
        raise UsageError(f"The report {file.name} has no picture {place}: its header {what}.")
    rows = rows_of(relation)
    made = draw(drawn[place], rows.fields, [row for batch in rows.batches for row in zip(*batch, strict=True)], file)
    if made.chart is None:
        raise UsageError(f"The report {file.name} has no rows to draw. {' '.join(made.notes)}".rstrip())
    return made.chart


def draw(
    picture: Picture, fields: Sequence[Field], rows: Sequence[Sequence[Any]], file: SqlFile, *, on_page: bool = False
) -> Drawing:
    """The picture of the rows (plain values); its chart is None where there is nothing to draw."""
    missing = fits(picture, [one.name for one in fields])
    if missing is not None:
        raise UsageError(f"{file.path}: the picture {picture.text!r} names {missing!r}, which the rows do not have.")
    board = Kinds(altair(), picture, fields, rows, on_page=on_page)
    made: Drawing = getattr(board, picture.kind)()
    if made.chart is not None:
        made.chart = board.dressed(made.chart, f"{file.title}: {label(picture.columns[1])}")
    return made


def requests_spec() -> dict[str, Any]:
    """The chart of a run's requests, without rows (n, kind, tokens, t): report.js puts them in."""
    alt = altair()
    board = Kinds(alt, Picture("column", ("n", "tokens", "kind")), [Field("n", "integer"), Field("tokens", "integer"),
                   Field("kind", "text")], [], on_page=True)  # fmt: skip
    kinds = ["from the cache", "other input", "output"]
    made = alt.Chart(alt.Data(values=[])).mark_bar().encode(
        x=alt.X(field="n", type="ordinal", title=None, axis=alt.Axis(labelOverlap=True, labelAngle=0, ticks=False)),
        y=alt.Y(field="tokens", type="quantitative", title=None, axis=board.axis(1, ticks=4)),
        order=alt.Order(field="o", type="quantitative"),
        color=alt.Color(
            field="kind", type="nominal", title=None, sort=kinds,
            scale=alt.Scale(domain=kinds, range=["var(--c5)", "var(--c1)", "var(--c2)"]),
        ),
        tooltip=[
            alt.Tooltip(field="n", type="nominal", title="Request"),
            alt.Tooltip(field="kind", type="nominal", title="Tokens"),
            alt.Tooltip(field="tokens", type="quantitative", title="Count", format=","),
            alt.Tooltip(field="t", type="nominal", title="After"),
        ],
    ).properties(height=130)  # fmt: skip
    spec: dict[str, Any] = board.dressed(made, "Tokens of each request").to_dict()
    return spec
