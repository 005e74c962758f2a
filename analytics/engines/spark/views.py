"""The relations of `queries/` as views of a Spark session, over the files of one pinned version of a lake.

What several relations build on is computed once, as its view is made (a local checkpoint): Spark would put the whole
plan of a view in the place of each mention, and plan run_metrics for minutes. The events themselves are never kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from analytics.engines.spark.portable import Types
from analytics.engines.spark.translate import Variables, translate
from analytics.engines.spark.types import relation_types
from analytics.errors import UsageError
from analytics.lake import Store
from analytics.relations import INLINED, Relation, closure, mentioned, relations
from analytics.schema import RECORDS, arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from analytics.api import Lake

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
    """The views of one version of a lake in one Spark session, for one choice of filters."""

    def __init__(self, spark: SparkSession, store: Store, variables: Variables | None = None) -> None:
        self._spark, self._store, self._variables = spark, store, variables
        self.types: Types = relation_types(store)
        self.made: list[str] = []
        self._parts: set[str] = set()
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        for record in RECORDS:
            reader = spark.read.option("basePath", str(store.root)).schema(_columns(arrow_schema(record)))
            reader.parquet(*store.files(record)).createOrReplaceTempView(f"{record}_rows")

    def make(self, needed: dict[str, Relation]) -> None:
        """Makes the views that are not there yet."""
        mentions = mentioned(relation.query for relation in needed.values())
        for name, relation in needed.items():
            if name in self.made or relation.query is None:
                continue
            frame = self.query(name, relation.query, first_line=_first_line(relation))
            if mentions[name] > 1 and name not in INLINED:
                frame = frame.localCheckpoint()
            frame.createOrReplaceTempView(name)
            self.made.append(name)

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
