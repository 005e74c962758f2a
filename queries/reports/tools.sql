-- Tools offered and used
-- row: one tool of one wire
-- from: tools_offered
-- unknown: offered_runs counts only runs that say what they offer; denied_calls NULL = no run can speak of decisions
-- not counted: runs with is_counted false
-- by: run
-- params: since, until, wire, run
-- picture: bar tool calls
CREATE OR REPLACE VIEW report_tools AS
WITH sums AS (
    SELECT
        wire, tool, count(*) FILTER (WHERE offered) AS offered_runs, count(*) FILTER (WHERE withheld) AS withheld_runs,
        count(*) FILTER (WHERE calls > 0) AS calling_runs, sum(calls) AS calls, sum(denied_calls) AS denied_calls,
        count(*) FILTER (WHERE calls > 0 AND NOT offered) AS runs_called_unoffered
    FROM tools_offered
    WHERE is_counted
    GROUP BY wire, tool
)
SELECT
    wire, tool, offered_runs, withheld_runs, calling_runs, CAST(calls AS BIGINT) AS calls,
    CAST(denied_calls AS BIGINT) AS denied_calls, runs_called_unoffered
FROM sums
ORDER BY calls DESC, wire, tool;
