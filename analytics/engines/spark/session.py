"""Questions to a lake answered by Spark: the same queries, the same filters, the same rows as DuckDB gives."""

from __future__ import annotations

from contextlib import redirect_stdout
from io import StringIO
from typing import TYPE_CHECKING, Any

import duckdb

from analytics.engines.spark.connecting import first_line
from analytics.engines.spark.views import Views
from analytics.errors import RunlakeError
from analytics.lake import Store
from analytics.readsonly import as_text, explain, only_reads
from analytics.relations import closure, words_of
from analytics.sqlrun import Filters, Values

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXPLAIN = "EXPLAIN"


class SparkQueries:
    """The relations of one pinned version of a lake, asked through Spark. Answers are DuckDB relations over Arrow."""

    def __init__(self, store: Store, spark: SparkSession) -> None:
        self._store, self._spark = store, spark
        self._duckdb = duckdb.connect()
        self._duckdb.execute("SET TimeZone = 'UTC'")
        self._views: tuple[Filters, Views] | None = None

    def close(self) -> None:
        """Takes the views back; the Spark session is its owner's to stop."""
        if self._views is not None:
            self._views[1].drop()
            self._views = None
        self._duckdb.close()

    def relation(
        self, sql: str, filters: Filters | None = None, values: Values | None = None
    ) -> duckdb.DuckDBPyRelation:
        """The rows of one statement that reads. Raises NotPortable, RunlakeError if Spark fails."""
        sql = only_reads(as_text(sql), self._duckdb)
        wants_plan = sql.lstrip().upper().startswith(EXPLAIN)
        if wants_plan:
            sql = sql.lstrip()[len(EXPLAIN) :]
        views = self._made_for(filters or Filters())
        views.make(closure(words_of(sql)))
        frame = self._ask(lambda: views.query("the query", sql, values=values))
        if wants_plan:
            with redirect_stdout(StringIO()) as plan:  # the one way that classic and Connect share
                frame.explain(extended=True)
            return self._duckdb.cursor().sql("SELECT ? AS plan", params=[plan.getvalue()])
        return self._duckdb.cursor().from_arrow(self._ask(frame.toArrow))

    def over(self, table: Any, where: str | None) -> duckdb.DuckDBPyRelation:
        """The rows of an Arrow table that meet a user's condition; a table at hand needs no Spark."""
        cursor = self._duckdb.cursor()
        cursor.register("these_rows", table)
        sql = "FROM these_rows" if where is None else f"FROM these_rows\nWHERE (\n{as_text(where)}\n)"
        try:
            return cursor.sql(only_reads(sql, self._duckdb))
        except duckdb.Error as error:
            raise explain(error) from error

    def _made_for(self, filters: Filters) -> Views:
        """Views that these filters are put into: they are text in Spark, not variables."""
        if self._views is None or self._views[0] != filters:
            if self._views is not None:
                self._views[1].drop()
            self._views = (filters, Views(self._spark, self._store, filters.variables()))
        return self._views[1]

    @staticmethod
    def _ask(question: Any) -> Any:
        try:
            return question()
        except RunlakeError:
            raise
        except Exception as error:
            if type(error).__module__.startswith(("pyspark", "py4j")):
                raise RunlakeError(f"The query failed in Spark. {first_line(error)}") from error
            raise
