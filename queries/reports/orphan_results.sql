-- Results without a call
-- row: one call of a run that has results, but that nobody requested
-- from: orphan_results
-- unknown: tool NULL = the result does not name it
-- not counted: results without a call id
-- by: none
-- params: since, until, wire, run
-- picture: none
CREATE OR REPLACE VIEW report_orphan_results AS
SELECT run_id, wire, call_id, call_occurrence, tool, results
FROM orphan_results
ORDER BY run_id, position;
