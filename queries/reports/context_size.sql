-- Context size
-- row: one run whose context size is known
-- from: context_size, compactions
-- unknown: context_window_tokens NULL = the run does not say how large the window is
-- not counted: runs with is_counted false; requests of subagents
-- by: none
-- params: since, until, wire, run
-- picture: bar run_id last_context_tokens
CREATE OR REPLACE VIEW report_context_size AS
WITH sizes AS (
    SELECT
        run_id, wire, count(*) FILTER (WHERE source <> 'compaction') AS points,
        max(context_tokens) AS peak_context_tokens,
        median(CAST(context_tokens AS DOUBLE)) AS median_context_tokens,
        quantile_cont(CAST(context_tokens AS DOUBLE), 0.90) AS p90_context_tokens,
        quantile_cont(CAST(context_tokens AS DOUBLE), 0.95) AS p95_context_tokens,
        quantile_cont(CAST(context_tokens AS DOUBLE), 0.99) AS p99_context_tokens,
        max(context_tokens) FILTER (WHERE is_last) AS last_context_tokens,
        max(context_window_tokens) AS context_window_tokens, max(used_percent) AS peak_used_percent
    FROM context_size
    WHERE is_counted
    GROUP BY run_id, wire
), cut AS (
    SELECT run_id, count(*) AS compactions FROM compactions GROUP BY run_id
)
SELECT
    s.run_id, s.wire, s.points, coalesce(c.compactions, 0) AS compactions, s.peak_context_tokens,
    s.median_context_tokens,
    s.p90_context_tokens, s.p95_context_tokens, s.p99_context_tokens, s.last_context_tokens,
    s.context_window_tokens, s.peak_used_percent
FROM sizes AS s LEFT JOIN cut AS c ON c.run_id = s.run_id
ORDER BY s.peak_context_tokens DESC, s.run_id;
