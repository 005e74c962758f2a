-- Tool calls that failed
-- row: one tool
-- from: tool_calls
-- unknown: tool NULL = not named; failed_percent NULL = no result of the tool says whether it failed
-- not counted: runs with is_counted false; results that do not say whether they failed are in calls alone
-- by: none
-- params: since, until, wire, run
-- picture: bar tool failed_calls
CREATE OR REPLACE VIEW report_failing_tools AS
SELECT
    tool, count(*) AS calls, count(is_error) AS judged_calls, count(*) FILTER (WHERE is_error) AS failed_calls,
    100 * CAST(count(*) FILTER (WHERE is_error) AS DOUBLE) / CAST(nullif(count(is_error), 0) AS DOUBLE)
        AS failed_percent,
    count(*) FILTER (WHERE state = 'denied') AS denied, count(*) FILTER (WHERE state = 'interrupted') AS interrupted,
    count(DISTINCT run_id) FILTER (WHERE is_error) AS runs_with_failures
FROM tool_calls
WHERE is_counted
GROUP BY tool
ORDER BY failed_calls DESC, calls DESC, tool;
