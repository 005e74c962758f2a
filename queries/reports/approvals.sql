-- Approvals
-- row: one call that needed approval
-- from: approvals
-- unknown: answered_by NULL = no answer, or it names nobody; is_exact false = the run is not closed
-- not counted: calls that a policy decided alone
-- by: state
-- params: since, until, wire, run
-- picture: none
CREATE OR REPLACE VIEW report_approvals AS
SELECT
    run_id, tool, call_id, state, asked_at, asked_why, answered_by, answered_at, answered_why, waited_ms, is_exact
FROM approvals
ORDER BY state DESC, run_id, position;
