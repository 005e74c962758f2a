"""A lake's figures as OpenMetrics text, for a scraper that reads what a nightly job leaves.

All are gauges: a lake that reads a rewritten file anew may count less than before, which no counter may. An unknown
value has no sample. Where a figure may be higher than the sample, NAME_is_lower_bound with the same labels is 1; where
calls may yet finish, NAME_is_exact is 0. A label that is not there is unknown.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import IO, TYPE_CHECKING, Any

from analytics.render import visible

if TYPE_CHECKING:
    from analytics.api import Lake


@dataclass(frozen=True, slots=True)
class Family:
    """One metric. `query` gives its labels as columns, then `value`; `flag`: what its last column, if any, says."""

    name: str
    help: str
    query: str
    unit: str = ""
    flag: str = ""


_BOUND = "is_lower_bound"
_TOKENS = (
    "uncached_input", "cache_read", "cache_write_5m", "cache_write_1h", "cache_write", "input", "output", "reasoning",
)  # fmt: skip

FAMILIES: tuple[Family, ...] = (
    Family(
        "runlake_runs", "Runs, by wire; those that another run shows too are left out, here and in what follows.",
        "SELECT wire, count(*) AS value FROM run_metrics WHERE is_counted GROUP BY wire",
    ),
    Family(
        "runlake_runs_by_completeness", "Runs, by whether their stream has its end.",
        "SELECT completeness, count(*) AS value FROM run_metrics WHERE is_counted GROUP BY completeness",
    ),
    Family(
        "runlake_model_tokens",
        "Tokens by model and kind. input is uncached_input, cache_read and cache_write together; reasoning is a part "
        "of output.",
        "\nUNION ALL\n".join(
            f"SELECT model, '{kind}' AS kind, is_side_call AS side_call, {kind}_tokens AS value, is_lower_bound "
            "FROM token_usage_by_model"
            for kind in _TOKENS
        ),
        unit="tokens", flag=_BOUND,
    ),
    Family(
        "runlake_vendor_cost_usd", "What the vendors' own records say the runs cost.",
        """SELECT CAST(sum(TRY_CAST(cost_usd AS DECIMAL(18, 10))) AS DECIMAL(38, 10)) AS value,
            bool_or(cost_usd IS NULL) AS is_lower_bound FROM run_metrics WHERE is_counted""",
        unit="usd", flag=_BOUND,
    ),
    Family(
        "runlake_runs_without_vendor_cost", "Runs whose records name no cost.",
        "SELECT count(*) AS value FROM run_metrics WHERE is_counted AND cost_usd IS NULL",
    ),
    Family(
        "runlake_denied_calls", "Denied tool calls, by tool.",
        "SELECT tool, denied_calls AS value, is_lower_bound FROM report_denials_by_tool", flag=_BOUND,
    ),
    Family(
        "runlake_unfinished_calls", "Tool calls that never got a result, by tool.",
        "SELECT tool, unfinished AS value, is_exact FROM report_unfinished_by_tool", flag="is_exact",
    ),
    Family(
        "runlake_refusals", "Refused lines and files, by wire and reason.",
        "SELECT wire, reason, refusals AS value FROM refusals_by_reason",
    ),
    Family(
        "runlake_lines", "Lines read, by what they are.",
        """SELECT 'event' AS kind, CAST(sum(event_lines) AS BIGINT) AS value FROM sources
        UNION ALL SELECT 'refused', CAST(sum(refused_lines) AS BIGINT) FROM sources
        UNION ALL SELECT 'blank', CAST(sum(blank_lines) AS BIGINT) FROM sources
        UNION ALL SELECT 'pending', count(*) FILTER (WHERE pending_bytes > 0) FROM sources""",
    ),
    Family(
        "runlake_rate_limit_peak_ratio", "The highest use seen of a rate limit, 1 being all of it.",
        """SELECT limit_id AS limit, window_minutes, max(peak_used_percent) / 100 AS value FROM rate_limit_windows
        GROUP BY limit_id, window_minutes""",
        unit="ratio",
    ),
    Family(
        "runlake_last_ingest_timestamp_seconds", "When a source was last read, Unix time.",
        "SELECT epoch_us(max(last_seen)) / 1000000 AS value FROM sources", unit="seconds",
    ),
)  # fmt: skip


def write_openmetrics(lake: Lake, filters: dict[str, Any], runlake_version: str, to: IO[bytes]) -> int:
    """Writes all families, ended by # EOF; the number of samples. A family without a known value is left out."""
    count = 1
    labels = _labels({"version": runlake_version, "lake_version": str(lake.version)})
    to.write(b"# TYPE runlake info\n# HELP runlake What made these figures, and the version of the lake.\n")
    to.write(f"runlake_info{labels} 1\n".encode())
    for family in FAMILIES:
        lines = list(_samples(family, lake, filters))
        flags = [line for line, is_flag in lines if is_flag]
        samples = [line for line, is_flag in lines if not is_flag]
        if samples:
            to.write(_head(family.name, family.help, family.unit))
            to.write("".join(samples).encode())
        if flags:
            meaning = "1: the figure may be higher." if family.flag == _BOUND else "0: calls may yet finish."
            to.write(_head(f"{family.name}_{family.flag}", f"Of {family.name} with the same labels, {meaning}", ""))
            to.write("".join(flags).encode())
        count += len(lines)
    to.write(b"# EOF\n")
    return count


def _head(name: str, words: str, unit: str) -> bytes:
    text = f"# TYPE {name} gauge\n"
    if unit:
        text += f"# UNIT {name} {unit}\n"
    return f"{text}# HELP {name} {_escaped(words)}\n".encode()


def _samples(family: Family, lake: Lake, filters: dict[str, Any]) -> Iterator[tuple[str, bool]]:
    """The lines of a family and (True) of its flag, in an order that is the same each time."""
    answer = lake.sql(f"FROM (\n{family.query}\n) ORDER BY ALL", **filters)
    names = answer.columns
    seen: set[str] = set()
    for row in answer.fetchall():
        values = dict(zip(names, row, strict=True))
        value = values.pop("value")
        flag = values.pop(family.flag) if family.flag else None
        if value is None:
            continue
        labels = _unique(values, seen)
        yield f"{family.name}{labels} {_number(value)}\n", False
        if flag is not None:
            yield f"{family.name}_{family.flag}{labels} {int(flag)}\n", True


def _unique(values: dict[str, Any], seen: set[str]) -> str:
    """The labels; texts that differ in what cannot be shown are told apart, since a scraper refuses all otherwise."""
    told = {name: _text(value) for name, value in values.items() if value is not None}
    labels, number = _labels(told), 1
    while labels in seen:
        number += 1
        labels = _labels(told | {"same_name": str(number)})
    seen.add(labels)
    return labels


def _labels(told: dict[str, str]) -> str:
    return "{" + ",".join(f'{name}="{_escaped(text)}"' for name, text in told.items()) + "}" if told else ""


def _text(value: Any) -> str:
    """A label's value. An empty text would be no label to a scraper."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "\n".join(visible(line) for line in str(value).split("\n")) or "(empty)"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _number(value: Decimal | float) -> str:
    if isinstance(value, Decimal):
        text = f"{value:f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    return repr(value)


def families() -> Iterable[str]:
    """The names of all metrics that may stand in the text."""
    for family in FAMILIES:
        yield family.name
        if family.flag:
            yield f"{family.name}_{family.flag}"
