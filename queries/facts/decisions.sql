-- Decisions
-- row: one decision: a record that allows, denies, replaces, asks about or abstains from a call
-- from: events with a decision
-- unknown: NULL = the record did not say; call_id NULL = it names no call
-- not counted: shadows. One call may stand here several times, and one denial in several kinds of evidence
CREATE OR REPLACE VIEW decisions AS
SELECT
    run_id, wire, ts, call_id, call_occurrence, tool, decision, decided_by, evidence, reason, duration_ms, turn_id,
    event,
    kind, source_id, line, part, position
FROM events
WHERE decision IS NOT NULL AND is_shadow IS NOT TRUE;
