-- Unfinished tool calls by tool
-- row: one tool
-- from: tool_calls_unfinished
-- unknown: tool NULL = not named; is_exact false = some of the runs are not closed
-- not counted: denied calls, calls that were never started, runs with is_counted false
-- by: tool, run
-- params: since, until, wire, run
-- picture: bar tool unfinished
CREATE OR REPLACE VIEW report_unfinished_by_tool AS
WITH sums AS (
    SELECT
        tool, sum(unfinished) AS unfinished, sum(interrupted) AS interrupted, count(DISTINCT run_id) AS runs,
        bool_and(is_exact) AS is_exact
    FROM tool_calls_unfinished
    WHERE is_counted AND unfinished > 0
    GROUP BY tool
)
SELECT tool, CAST(unfinished AS BIGINT) AS unfinished, CAST(interrupted AS BIGINT) AS interrupted, runs, is_exact
FROM sums
ORDER BY unfinished DESC, tool;
