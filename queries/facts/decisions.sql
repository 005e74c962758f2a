-- Decisions
-- row: one decision: a record that allows, denies, replaces, asks about or abstains from a call
-- from: events with a decision; a decision without a tool takes the tool of the call it names
-- unknown: NULL = the record did not say; call_id NULL = it names no call
-- not counted: shadows. One call may stand here several times, and one denial in several kinds of evidence
CREATE OR REPLACE VIEW decisions AS
WITH decided AS (
    SELECT
        run_id, wire, source_id, line, part, position, ts, event, kind, call_id, call_occurrence, tool, decision,
        decided_by, evidence, reason, duration_ms, turn_id
    FROM events
    WHERE decision IS NOT NULL AND is_shadow IS NOT TRUE
), nameless AS (
    SELECT run_id, call_id, call_occurrence
    FROM decided
    WHERE tool IS NULL AND call_id IS NOT NULL
    GROUP BY run_id, call_id, call_occurrence
), tools AS (
    SELECT e.run_id, e.call_id, e.call_occurrence, min(e.tool) AS tool
    FROM events AS e
    JOIN nameless AS n
        ON n.run_id = e.run_id AND n.call_id = e.call_id
        AND n.call_occurrence IS NOT DISTINCT FROM e.call_occurrence
    WHERE e.kind IN ('tool.requested', 'tool.started') AND e.tool IS NOT NULL
    GROUP BY e.run_id, e.call_id, e.call_occurrence
)
SELECT
    d.run_id, d.wire, d.ts, d.call_id, d.call_occurrence, coalesce(d.tool, t.tool) AS tool, d.decision, d.decided_by,
    d.evidence, d.reason, d.duration_ms, d.turn_id, d.event, d.kind, d.source_id, d.line, d.part, d.position
FROM decided AS d
LEFT JOIN tools AS t
    ON t.run_id = d.run_id AND t.call_id = d.call_id
    AND t.call_occurrence IS NOT DISTINCT FROM d.call_occurrence;
