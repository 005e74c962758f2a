-- Unfinished tool calls
-- row: run × tool with calls that never got a result
-- from: tool_calls_unfinished
-- unknown: tool NULL = not named; is_exact false = the run is not closed, calls may yet finish
-- not counted: denied calls, calls that were never started
-- by: tool, run
-- params: since, until, wire, run
-- picture: bar tool unfinished
CREATE OR REPLACE VIEW report_unfinished AS
SELECT run_id, wire, tool, unfinished, interrupted, is_exact, oldest_at, harness_lab_rule
FROM tool_calls_unfinished
ORDER BY unfinished DESC, run_id, tool;
