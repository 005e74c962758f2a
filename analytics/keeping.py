"""Keeping what reports build on before anybody asks: at the end of `runlake compact`.

The first report over a version computes what all of them read (`analytics.factfiles`). Of ten million events that takes
seconds, for which nobody waits here. Nothing depends on it: where it fails the compaction stands, and the first report
computes it as ever.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import duckdb

from analytics.factfiles import KEPT
from analytics.places import is_remote
from analytics.sqlrun import Session

if TYPE_CHECKING:
    from analytics.lake import Store

LONG_S = 2.0


def keep_facts(store: Store, say: Callable[[str], None] | None = None) -> str | None:
    """Computes and keeps what is not kept yet of what the reports of a version build on; None, or what hinders it.

    In the memory of a query, half of the machine's, beyond which it spills. `say` is told once if it takes long. Of a
    lake on an object store nothing is kept, as reports keep nothing there.
    """
    if is_remote(store.root):
        return None
    began, told = time.monotonic(), False

    def tell(done: int) -> None:
        nonlocal told
        if say is not None and not told and time.monotonic() - began > LONG_S:
            told = True
            say(
                f"Version {store.version} is committed. Now computing what its reports build on, so that the first "
                f"need not: {done} of {len(KEPT)} relations are kept."
            )

    session = Session(store, sandboxed=False, with_facts=True)
    try:
        hindrance = session.keep_facts(tell)
    except duckdb.Error as error:
        hindrance = error
    finally:
        session.close()
    if hindrance is None:
        return None
    return (
        f"Version {store.version} is committed, but what its reports build on could not be kept: "
        f"{str(hindrance).strip().rstrip('.')}. The first report computes it."
    )
