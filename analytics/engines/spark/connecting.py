"""A Spark session for the command line: of a master, or of a Connect server; what hinders it is said in a sentence."""

from __future__ import annotations

import logging
import os
import shutil
import sys
from typing import TYPE_CHECKING, Any

from analytics.errors import RunlakeError, UsageError
from analytics.withoutpandas import show_pandas

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONNECT = "sc://"
ANSWER_SECONDS = 15.0
_INSTALL = "Install it: pip install 'runlake[spark]'."

# One machine answers many small queries. Spark makes Java of each and compiles that, which costs more than it saves
# (172 against 104 CPU s for all views of the tests' lake), and cuts each exchange into a cluster's 200 pieces.
_LOCAL = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": str(2 * (os.cpu_count() or 1)),
}


def connect(master: str | None) -> SparkSession:
    """A Spark session: of a master (`local[2]`, `spark://…`, `local-cluster[2,1,1024]`), or a Connect server (`sc://…`).

    None: SPARK_REMOTE or the cluster's own settings decide. Raises UsageError where something is not installed,
    RunlakeError if the session cannot be made.
    """
    show_pandas()
    try:
        import sqlglot  # noqa: F401, PLC0415 (the same extra; said before a session is made)
        from pyspark.sql import SparkSession  # noqa: PLC0415 (an extra)
    except ImportError:
        raise UsageError(f"Spark is not installed here. {_INSTALL}") from None
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    remote = os.environ.get("SPARK_REMOTE") if master is None else master
    builder: Any = SparkSession.builder
    if remote is not None and remote.startswith(CONNECT):
        _answers(remote)
        builder = builder.remote(remote)
    else:
        _has_java(master)
        builder = _classic(builder, master)
    where = remote or "the configured master"
    try:
        return builder.getOrCreate()  # type: ignore[no-any-return]
    except ImportError as error:
        raise UsageError(f"Spark lacks a package: {first_line(error)} {_INSTALL}") from error
    except Exception as error:
        raise RunlakeError(f"Spark at {where} cannot be used: {first_line(error)} Check --master.") from error


def _classic(builder: Any, master: str | None) -> Any:
    settings = {
        "spark.ui.enabled": "false", "spark.log.level": "ERROR", "spark.sql.session.timeZone": "UTC",
        "spark.ui.showConsoleProgress": "false",
    }  # fmt: skip
    if (master or "").startswith("local"):
        settings |= _LOCAL
    builder = builder.appName("runlake")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder if master is None else builder.master(master)


def _has_java(master: str | None) -> None:
    """Spark's own launcher only says that the gateway exited."""
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else "java"
    if shutil.which(java) is None:
        looked = f"JAVA_HOME is {home}, and there is no bin/java" if home else "there is no java on PATH"
        raise UsageError(
            f"Spark at {master or 'the configured master'} needs Java 17 on this machine: {looked}. Install it "
            "(Debian: openjdk-17-jre-headless), or name a Connect server: --master sc://HOST."
        )


def _answers(url: str) -> None:
    """Asks whether anyone listens: Spark's own client would try again for ten minutes."""
    try:
        import grpc  # noqa: PLC0415 (an extra)
        from pyspark.sql.connect.client.core import DefaultChannelBuilder  # noqa: PLC0415 (the same)
    except ImportError as error:
        raise UsageError(f"Spark Connect lacks a package: {first_line(error)} {_INSTALL}") from error
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)  # errors are told once, and not as JSON
    try:
        channel = DefaultChannelBuilder(url).toChannel()
    except Exception as error:
        raise UsageError(f"{url!r} is no address of Spark Connect. Write sc://HOST or sc://HOST:PORT.") from error
    try:
        grpc.channel_ready_future(channel).result(timeout=ANSWER_SECONDS)
    except grpc.FutureTimeoutError:
        raise RunlakeError(
            f"Spark Connect at {url.split(';', 1)[0]} does not answer within {ANSWER_SECONDS:.0f} s. Check host and "
            "port (15002 unless the server was told another), and that the server runs."
        ) from None
    finally:
        channel.close()


def first_line(error: BaseException) -> str:
    """What an error of Spark's says, without its stack; one sentence."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    is_java = lines[0].startswith("An error occurred while calling") and len(lines) > 1
    said = (lines[1].removeprefix(": ") if is_java else lines[0]).rstrip(";: ")
    return said if said.endswith((".", "!", "?")) else f"{said}."
