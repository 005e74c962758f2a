-- Denials by run
-- row: one run that can speak of decisions
-- from: run_metrics
-- unknown: denied_calls NULL = the stream cannot speak of decisions: such runs have no row
-- not counted: records: denied_calls are distinct calls
-- by: tool, reason, decided_by, run
-- params: since, until, wire, run
-- picture: bar run_id denied_calls
CREATE OR REPLACE VIEW report_denials_by_run AS
SELECT
    run_id, wire, adapter, completeness, denied_calls, denials_are_lower_bound AS is_lower_bound, tool_calls, is_counted
FROM run_metrics
WHERE denied_calls IS NOT NULL
ORDER BY denied_calls DESC, run_id;
