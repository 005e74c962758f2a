-- Warnings
-- row: one warning or error record
-- from: incidents of kinds warning and error
-- unknown: NULL = the record did not say
-- not counted: retries (see retries)
CREATE OR REPLACE VIEW warnings AS
SELECT
    run_id, wire, ts, kind, status AS code, message, reason, call_id, tool, decision, event, source_id, line,
    position
FROM incidents
WHERE kind IN ('warning', 'error');
