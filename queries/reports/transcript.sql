-- Transcript
-- row: one event that a reader of a run wants to see
-- from: transcript
-- unknown: text NULL = the wire keeps none
-- not counted: shadows, usage, rate limits, opaque records
-- by: none
-- params: since, until, wire, run
-- picture: none
CREATE OR REPLACE VIEW report_transcript AS
SELECT run_id, position, ts, turn_id, kind, tool, call_id, decision, decided_by, status, is_error, duration_ms, text
FROM transcript
ORDER BY run_id, position;
