-- The lake in one table
-- row: one wire, then all of them
-- from: run_metrics, refusals
-- unknown: a figure NULL = no run of the wire can say; runs_without_tokens and runs_without_cost say how
--   many are missing from the sums
-- not counted: runs with is_counted false. Refusals are those of the wire, also where they name no run
-- by: none
-- params: since, until, wire, run
-- picture: bar wire runs
CREATE OR REPLACE VIEW report_overview AS
WITH wires AS (
    SELECT
        wire, count(*) AS runs, count(*) FILTER (WHERE completeness = 'closed') AS closed_runs,
        count(*) FILTER (WHERE completeness IN ('open', 'truncated', 'inconsistent')) AS broken_runs,
        sum(events) AS events,
        sum(input_tokens) AS input_tokens, sum(output_tokens) AS output_tokens,
        count(*) FILTER (WHERE output_tokens IS NULL) AS runs_without_tokens,
        bool_or(tokens_are_lower_bound) AS tokens_are_lower_bound,
        sum(TRY_CAST(cost_usd AS DECIMAL(18, 10))) AS cost,
        count(*) FILTER (WHERE cost_usd IS NULL) AS runs_without_cost, sum(tool_calls) AS tool_calls,
        sum(denied_calls) AS denied_calls, bool_or(denials_are_lower_bound) AS denials_are_lower_bound,
        sum(tool_calls_unfinished) AS tool_calls_unfinished, bool_and(unfinished_is_exact) AS unfinished_is_exact,
        min(started_at) AS first_at, max(started_at) AS last_at
    FROM run_metrics
    WHERE is_counted
    GROUP BY wire
), refused AS (
    SELECT wire, count(*) AS refusals FROM refusals GROUP BY wire
), rows_and_sum AS (
    SELECT 0 AS place, w.*, coalesce(r.refusals, 0) AS refusals
    FROM wires AS w LEFT JOIN refused AS r ON r.wire = w.wire
    UNION ALL
    SELECT
        1, 'all', sum(runs), sum(closed_runs), sum(broken_runs), sum(events), sum(input_tokens),
        sum(output_tokens), sum(runs_without_tokens), bool_or(tokens_are_lower_bound), sum(cost),
        sum(runs_without_cost), sum(tool_calls),
        sum(denied_calls), bool_or(denials_are_lower_bound), sum(tool_calls_unfinished), bool_and(unfinished_is_exact),
        min(first_at), max(last_at), (SELECT count(*) FROM refusals)
    FROM wires
    HAVING count(*) > 0
)
SELECT
    wire, CAST(runs AS BIGINT) AS runs, CAST(closed_runs AS BIGINT) AS closed_runs,
    CAST(broken_runs AS BIGINT) AS broken_runs, CAST(events AS BIGINT) AS events,
    CAST(refusals AS BIGINT) AS refusals, CAST(input_tokens AS BIGINT) AS input_tokens,
    CAST(output_tokens AS BIGINT) AS output_tokens, tokens_are_lower_bound,
    CAST(runs_without_tokens AS BIGINT) AS runs_without_tokens, CAST(cost AS DOUBLE) AS cost_usd,
    runs_without_cost > 0 AS cost_is_lower_bound, CAST(runs_without_cost AS BIGINT) AS runs_without_cost,
    CAST(tool_calls AS BIGINT) AS tool_calls, CAST(denied_calls AS BIGINT) AS denied_calls, denials_are_lower_bound,
    CAST(tool_calls_unfinished AS BIGINT) AS tool_calls_unfinished, unfinished_is_exact, first_at, last_at
FROM rows_and_sum
ORDER BY place, wire;
