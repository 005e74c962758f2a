-- Unfinished tool calls by run
-- row: one run with calls that never got a result
-- from: run_metrics
-- unknown: runs whose stream shows no results have no row
-- not counted: denied calls, calls that were never started
-- by: tool, run
-- params: since, until, wire, run
-- picture: bar run_id unfinished
CREATE OR REPLACE VIEW report_unfinished_by_run AS
SELECT
    run_id, wire, adapter, completeness, tool_calls_unfinished AS unfinished, unfinished_is_exact AS is_exact,
    tool_calls, is_counted
FROM run_metrics
WHERE tool_calls_unfinished > 0
ORDER BY tool_calls_unfinished DESC, run_id;
