"""A lake in the browser: pick runs, see what happened in one, ask in SQL.

marimo run notebooks/explore.py              a page over the sample corpus
marimo run notebooks/explore.py -- --lake L  over the lake L (RUNLAKE_LAKE does it, too)
marimo edit notebooks/explore.py             the same with its cells
python notebooks/explore.py --lake L         without a browser: prints what the page would begin with

Nothing leaves the machine, and the SQL cell reads the lake and nothing else.
"""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="full", app_title="runlake")


@app.cell
def _():
    import os
    import tempfile
    from pathlib import Path

    import marimo as mo
    import matplotlib.pyplot as plt
    import polars as pl

    from analytics import open_lake
    from analytics.errors import RunlakeError

    return Path, RunlakeError, mo, open_lake, os, pl, plt, tempfile


@app.cell
def _(Path, mo, open_lake, os, tempfile):
    named = mo.cli_args().get("lake") or os.environ.get("RUNLAKE_LAKE")
    if named:
        lake = open_lake(str(named), sandboxed=True)
    else:
        made = open_lake(Path(tempfile.mkdtemp(), "lake"), create=True)
        made.ingest(Path(__file__).parents[1] / "data" / "corpus")
        lake = open_lake(made.path, sandboxed=True)
    return (lake,)


@app.cell
def _(lake, mo):
    runs = lake.sql(
        """
        SELECT run_id, wire, task, variant, started_at, completeness, outcome, total_tokens, tokens_are_lower_bound,
            cost_usd, tool_calls, denied_calls, refused_lines, is_counted
        FROM run_metrics
        ORDER BY started_at NULLS LAST, run_id
        """
    ).pl()
    mo.md(f"# {len(runs):,} runs\n\nVersion {lake.version} of the lake. *None* is unknown, never zero.")
    return (runs,)


@app.cell
def _(mo, runs):
    picked = mo.ui.table(
        runs, selection="multi", page_size=10, label="Pick runs; with none picked the pictures show all."
    )
    picked
    return (picked,)


@app.cell
def _(picked, runs):
    chosen = picked.value if len(picked.value) else runs
    return (chosen,)


@app.cell
def _(chosen, pl, plt):
    by_wire = (
        chosen.filter("is_counted")  # not the second copy of the same work
        .group_by("wire")
        .agg(
            pl.col("total_tokens").sum() / 1e6,
            (pl.col("tokens_are_lower_bound").any() | pl.col("total_tokens").is_null().any()).alias("at_least"),
            pl.col("total_tokens").count().alias("known"),
        )
        .sort("wire", descending=True)
    )
    tokens, _ax = plt.subplots(figsize=(8, 0.9 + 0.4 * len(by_wire)), layout="constrained")
    _bars = _ax.barh(by_wire["wire"], by_wire["total_tokens"], color="#0072b2", height=0.6)
    _words = [
        f"{'≥ ' if low else ''}{n:.2f}" if known else "unknown"
        for n, low, known in by_wire.select("total_tokens", "at_least", "known").iter_rows()
    ]
    _ax.bar_label(_bars, _words, padding=3)
    _ax.spines[["top", "right"]].set_visible(False)
    _ax.margins(x=0.12)
    _ax.set(title="Tokens of these runs by wire", xlabel="million tokens; ≥: cut runs, or runs that do not say")
    tokens
    return (tokens,)


@app.cell
def _(chosen, mo):
    run = mo.ui.dropdown(chosen["run_id"].to_list(), value=chosen["run_id"][0], label="Timeline of", searchable=True)
    run
    return (run,)


@app.cell
def _(lake, mo, run):
    mo.stop(run.value is None, mo.md("Pick a run."))
    timeline = lake.show(run.value).pl().drop("run_id", "wire", "position")
    timeline = timeline.select(column for column in timeline if column.null_count() < len(column))
    (told,) = lake.sql("SELECT completeness, completeness_reason FROM run_metrics", run=run.value).fetchall()
    mo.vstack(
        [
            mo.md(f"**{told[0]}**: {told[1]}" if told[1] else f"**{told[0]}**"),
            mo.ui.table(timeline, selection=None, page_size=20),
        ]
    )
    return (timeline,)


@app.cell
def _(mo):
    query = mo.ui.code_editor(
        value="SELECT tool, count(*) AS calls, count(*) FILTER (WHERE decision = 'deny') AS denied\n"
        "FROM tool_calls\nGROUP BY tool\nORDER BY calls DESC, tool\nLIMIT 10",
        language="sql",
        label="SQL over the lake; `SHOW TABLES` lists what it can ask.",
        debounce=True,
    )
    query
    return (query,)


@app.cell
def _(RunlakeError, lake, mo, query):
    try:
        answer = lake.sql(query.value).pl()
        shown = mo.ui.table(answer, selection=None)
    except RunlakeError as error:
        answer, shown = None, mo.callout(mo.plain_text(str(error)), kind="warn")
    shown
    return (answer,)


@app.cell
def _(answer, mo, run, runs, timeline):
    if mo.app_meta().mode == "script":
        print(f"{len(runs):,} runs\n\n{run.value}: {len(timeline):,} events\n\n{answer}")
    return


if __name__ == "__main__":
    app.run()
