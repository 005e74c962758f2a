"""The relations of `queries/` as views of a Spark session, over the files of one pinned version of a lake.

What several relations build on is computed once, as its view is made (a local checkpoint): Spark would put the whole
plan of a view in the place of each mention, and plan run_metrics for minutes. The events themselves are never kept.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from analytics.engines.spark.portable import Types
from analytics.engines.spark.translate import Variables, translate
from analytics.engines.spark.types import relation_types
from analytics.errors import UsageError
from analytics.lake import Store
from analytics.places import is_remote
from analytics.relations import INLINED, Relation, closure, mentioned, relations
from analytics.schema import RECORDS, arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from analytics.api import Lake

AT_ONCE = 3
_SPARK_TYPES = {
    "string": "STRING", "large_string": "STRING", "int64": "BIGINT", "int32": "INT", "double": "DOUBLE",
    "bool": "BOOLEAN", "binary": "BINARY", "timestamp[us, tz=UTC]": "TIMESTAMP",
}  # fmt: skip


def register(spark: SparkSession, lake: Lake, *names: str) -> list[str]:
    """Makes the relations (all of them, unless named) temporary views of a Spark session; gives the names made.

    They show the version that `lake` is opened at. The session's time zone becomes UTC, as days and hours of the
    relations are. Raises UsageError on an unknown name.
    """
    known = relations()
    for name in names:
        if name not in known:
            raise UsageError.unknown_name("relation", name, list(known))
    views = Views(spark, lake.store)
    views.make(closure(names or known))
    return views.made


class Views:
    """The views of one version of a lake in one Spark session, for one choice of filters.

    Raises UsageError on a lake in an object store: pyspark comes without the jars that read one.
    """

    def __init__(self, spark: SparkSession, store: Store, variables: Variables | None = None) -> None:
        if is_remote(store.root):
            raise UsageError(
                f"Spark answers questions to lakes in folders that all its machines see, and this one is {store.root}. "
                "Ask without --engine spark: DuckDB reads it. An ingest into it may use Spark."
            )
        self._spark, self._store, self._variables = spark, store, variables
        self.types: Types = relation_types(store)
        self.made: list[str] = []
        self._parts: set[str] = set()
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        for record in RECORDS:
            reader = spark.read.option("basePath", str(store.root)).schema(_columns(arrow_schema(record)))
            reader.parquet(*store.files(record)).createOrReplaceTempView(f"{record}_rows")

    def make(self, needed: dict[str, Relation]) -> None:
        """Makes the views that are not there yet, several at once: the driver plans each for longer than it runs."""
        mentions = mentioned(relation.query for relation in needed.values())
        missing = {name: one for name, one in needed.items() if name not in self.made and one.query is not None}
        making: dict[str, Future[None]] = {}
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for name, relation in missing.items():  # each after those it builds on, so that none waits for a later one
                before = [making[word] for word in relation.builds_on if word in making]
                is_kept = mentions[name] > 1 and name not in INLINED
                making[name] = pool.submit(self._make, name, relation, before, is_kept=is_kept)
            try:
                for name, made in making.items():
                    made.result()
                    self.made.append(name)
            except BaseException:
                pool.shutdown(wait=True, cancel_futures=True)
                raise

    def _make(self, name: str, relation: Relation, before: list[Future[None]], *, is_kept: bool) -> None:
        for one in before:
            one.result()
        frame = self.query(name, relation.query or "", first_line=_first_line(relation))
        (frame.localCheckpoint() if is_kept else frame).createOrReplaceTempView(name)

    def query(self, name: str, sql: str, *, first_line: int = 1, values: Variables | None = None) -> DataFrame:
        """The rows of a query over views that are made. `values`: further variables that it asks for."""
        variables = {**(self._variables or {}), **(values or {})}
        *before, last = translate(name, sql, self.types, variables, first_line=first_line)
        for one in before:
            frame = self._spark.sql(one.sql)
            (frame.localCheckpoint() if one.is_kept else frame).createOrReplaceTempView(one.name or name)
            self._parts.add(one.name or name)
        return self._spark.sql(last.sql)

    def drop(self) -> None:
        """Takes the views out of the session."""
        for name in (*self.made, *self._parts, *(f"{record}_rows" for record in RECORDS)):
            self._spark.catalog.dropTempView(name)
        self.made.clear()
        self._parts.clear()


def _first_line(relation: Relation) -> int:
    """The line of its file on which the query of a relation begins."""
    return relation.text[: relation.text.index(relation.query or "")].count("\n") + 1


def _columns(schema: Any) -> str:
    """The columns of a record kind's files as Spark's DDL; the partition columns are read off the paths."""
    return ", ".join([*(f"`{field.name}` {_type(field.type)}" for field in schema), "record STRING", "wire STRING"])


def _type(kind: Any) -> str:
    import pyarrow as pa  # noqa: PLC0415 (only where Spark reads)

    if pa.types.is_list(kind):
        return f"ARRAY<{_type(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return "STRUCT<" + ", ".join(f"`{field.name}`: {_type(field.type)}" for field in kind) + ">"
    return _SPARK_TYPES[str(kind)]
