"""Spark as an engine: the same worker function reads, the same queries answer (extra `runlake[spark]`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from analytics.engines.spark.views import register

__all__ = ["register"]


def __getattr__(name: str) -> Any:
    """`register`, once it is asked for: what it needs is an extra, whose absence `connect` has to tell first."""
    if name == "register":
        from analytics.engines.spark.views import register  # noqa: PLC0415 (see above)

        return register
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
