-- Decisions
-- row: one decision: a record that allows, denies, replaces, asks about or abstains from a call
-- from: events with a decision, scoped_calls
-- unknown: NULL = the record did not say; call_id NULL = it names no call
-- not counted: shadows. One call may stand here several times, and one denial in several kinds of evidence
--   Of a call whose id is unique lake-wide (call_scope) each decision stands once for a kind of evidence and a reason,
--   with the call's owner, however many rows, files and runs repeat it; its tool is that of the call. position is that
--   of the record in its own run.
CREATE OR REPLACE VIEW decisions AS
SELECT
    run_id, wire, ts, call_id, call_occurrence, tool, decision, decided_by, evidence, reason, duration_ms, turn_id,
    event, kind, source_id, line, part, position
FROM events
WHERE decision IS NOT NULL AND is_shadow IS NOT TRUE AND (call_scope IS NULL OR call_id IS NULL)
UNION ALL
SELECT
    run_id, wire, ts, call_id, call_occurrence, tool, decision, decided_by, evidence, reason, duration_ms, turn_id,
    event, kind, source_id, line, part, record_position
FROM scoped_calls
WHERE decision IS NOT NULL
QUALIFY row_number() OVER (
    PARTITION BY run_id, call_scope, call_id, decision, decided_by, evidence, reason ORDER BY position
) = 1;
