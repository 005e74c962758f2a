"""What runs the worker function: processes of this machine, or the executors of a Spark session."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from analytics.engines.local import Pool
    from analytics.tasks import Settings


def pool(settings: Settings, jobs: int, spark: SparkSession | None) -> Pool:
    """What reads the groups of files."""
    if spark is not None:
        from analytics.engines.spark.ingest import SparkPool  # noqa: PLC0415 (an extra)

        return SparkPool(spark, settings)
    from analytics.engines.local import Pool  # noqa: PLC0415 (0.2 s; nothing to read needs no reader)

    return Pool(jobs, settings)


def parallelism(spark: SparkSession) -> int:
    """How many tasks a Spark session runs at once."""
    from analytics.engines.spark.ingest import parallelism  # noqa: PLC0415 (an extra)

    return parallelism(spark)
