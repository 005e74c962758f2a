"""Spark as an engine: the same worker function reads, the same queries answer (extra `runlake[spark]`)."""

from analytics.engines.spark.views import register

__all__ = ["register"]
