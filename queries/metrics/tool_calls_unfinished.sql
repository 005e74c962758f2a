-- Tool calls without an end
-- row: run × tool with calls that were interrupted or never got a result
-- from: tool_calls; Harness Lab's events for its own published rule
-- unknown: tool NULL = not named; is_exact false = the run is not closed, so the calls may yet finish
-- not counted: denied calls, calls that were never started (where the stream shows starts), calls without an id
--   harness_lab_rule: Harness Lab's published figure of the whole run (repeated on each of its rows): the larger of
--   its interrupted results and of started ids without a finish. It counts its own launcher, and an id used twice
--   once. A run where only that rule finds something has a row with tool NULL and unfinished 0.
CREATE OR REPLACE VIEW tool_calls_unfinished AS
WITH ours AS (
    SELECT
        run_id, wire, tool, count(*) AS unfinished, count(*) FILTER (WHERE state = 'interrupted') AS interrupted,
        min(requested_at) AS oldest_at, bool_and(is_exact) AS is_exact, bool_and(is_counted) AS is_counted
    FROM tool_calls
    WHERE state IN ('unfinished', 'interrupted')
    GROUP BY run_id, wire, tool
), ids AS (
    SELECT
        run_id, call_id,
        count(*) FILTER (WHERE event IN ('tool_started', 'command_started')) AS starts,
        count(*) FILTER (WHERE event IN ('tool_finished', 'command_finished')) AS finishes,
        count(*) FILTER (
            WHERE event IN ('tool_finished', 'command_finished') AND status = 'interrupted'
        ) AS interrupted
    FROM events
    WHERE wire = 'harness-lab' AND call_id IS NOT NULL AND part = 0
        AND event IN ('tool_started', 'command_started', 'tool_finished', 'command_finished')
    GROUP BY run_id, call_id
), sets AS (
    SELECT
        run_id, sum(interrupted) AS interrupted,
        count(*) FILTER (WHERE starts > 0 AND finishes = 0) AS still_open
    FROM ids
    GROUP BY run_id
), published AS (
    SELECT run_id, greatest(CAST(interrupted AS BIGINT), still_open) AS harness_lab_rule FROM sets
)
SELECT
    o.run_id, o.wire, o.tool, o.unfinished, o.interrupted, o.oldest_at, o.is_exact,
    CASE WHEN o.wire = 'harness-lab' THEN coalesce(p.harness_lab_rule, 0) END AS harness_lab_rule, o.is_counted
FROM ours AS o LEFT JOIN published AS p ON p.run_id = o.run_id
UNION ALL
SELECT
    p.run_id, s.wire, NULL AS tool, 0 AS unfinished, 0 AS interrupted, NULL AS oldest_at,
    s.completeness = 'closed' AS is_exact, p.harness_lab_rule, s.is_counted
FROM published AS p
JOIN run_states AS s ON s.run_id = p.run_id
ANTI JOIN ours AS o ON o.run_id = p.run_id
WHERE p.harness_lab_rule > 0;
