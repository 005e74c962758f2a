-- Runs
-- row: one run, newest first
-- from: runs, run_metrics
-- unknown: a figure NULL = the stream cannot say
-- not counted: second copies of a run
-- by: none
-- params: since, until, wire, run
-- picture: none
CREATE OR REPLACE VIEW report_runs AS
SELECT
    m.run_id, m.wire, m.adapter, m.task, m.variant, m.started_at, m.duration_ms, m.completeness, m.outcome,
    m.close_reason,
    m.events, m.refused_lines, m.total_tokens, m.tokens_are_lower_bound, m.cost_usd, m.tool_calls, m.denied_calls,
    m.denials_are_lower_bound, m.tool_calls_unfinished, m.unfinished_is_exact, m.is_counted, m.same_run_as
FROM run_metrics AS m
ORDER BY m.started_at DESC NULLS LAST, m.run_id;
