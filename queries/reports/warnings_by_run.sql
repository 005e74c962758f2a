-- Warnings by run
-- row: one warning or error record
-- from: warnings
-- unknown: NULL = the record did not say
-- not counted: retries
-- by: run
-- params: since, until, wire, run
-- picture: none
CREATE OR REPLACE VIEW report_warnings_by_run AS
SELECT run_id, ts, kind, code, message, tool, call_id, line
FROM warnings
ORDER BY run_id, position;
