-- How long tool calls take
-- row: one tool with calls whose duration is known
-- from: tool_calls
-- unknown: tool NULL = not named; timed_calls: those of the calls whose duration is known
-- not counted: runs with is_counted false; denied calls
-- by: none
-- params: since, until, wire, run
-- picture: range tool p50_ms p95_ms
CREATE OR REPLACE VIEW report_slow_tools AS
SELECT
    tool, count(*) AS calls, count(duration_ms) AS timed_calls,
    quantile_cont(CAST(duration_ms AS DOUBLE), 0.5) AS p50_ms,
    quantile_cont(CAST(duration_ms AS DOUBLE), 0.9) AS p90_ms,
    quantile_cont(CAST(duration_ms AS DOUBLE), 0.95) AS p95_ms,
    quantile_cont(CAST(duration_ms AS DOUBLE), 0.99) AS p99_ms,
    max(duration_ms) AS max_ms, CAST(sum(duration_ms) AS BIGINT) AS total_ms
FROM tool_calls
WHERE is_counted AND state <> 'denied'
GROUP BY tool
HAVING count(duration_ms) > 0
ORDER BY p95_ms DESC, tool;
