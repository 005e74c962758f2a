-- Tools offered and used
-- row: one tool of one wire
-- from: tools_offered
-- unknown: offered_runs and runs_called_unoffered count only runs that say what they offer (NULL = none
--   does), withheld_runs those that say what they withhold; denied_calls NULL = no run can speak of decisions
-- not counted: runs with is_counted false
-- by: run
-- params: since, until, wire, run
-- picture: bar tool calls
CREATE OR REPLACE VIEW report_tools AS
WITH sums AS (
    SELECT
        wire, tool,
        CASE WHEN count(offered) > 0 THEN count(*) FILTER (WHERE offered) END AS offered_runs,
        CASE WHEN count(withheld) > 0 THEN count(*) FILTER (WHERE withheld) END AS withheld_runs,
        count(*) FILTER (WHERE calls > 0) AS calling_runs, sum(calls) AS calls, sum(denied_calls) AS denied_calls,
        CASE WHEN count(offered) > 0 THEN count(*) FILTER (WHERE calls > 0 AND NOT offered) END
            AS runs_called_unoffered,
        bool_or(denials_are_lower_bound) AS denials_are_lower_bound
    FROM tools_offered
    WHERE is_counted
    GROUP BY wire, tool
)
SELECT
    wire, tool, offered_runs, withheld_runs, calling_runs, CAST(calls AS BIGINT) AS calls,
    CAST(denied_calls AS BIGINT) AS denied_calls, denials_are_lower_bound, runs_called_unoffered
FROM sums
ORDER BY calls DESC, wire, tool;
