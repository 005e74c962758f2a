-- What went wrong, and what was cut
-- row: one record of an error, a retry, a warning, a compaction, an expired credential or an unknown record, once
-- from: events of these kinds; piece_links for copies
-- unknown: NULL = the record did not say
-- not counted: shadows; copies of a record (event_key): the run of the oldest source has it, one that is not counted
--   has its own
CREATE OR REPLACE VIEW incidents AS
WITH copies AS (
    SELECT
        p.run_id, e.wire, e.ts, e.kind, e.event, e.status, e.reason, e.message, e.call_id, e.tool, e.decision,
        e.turn_id, e.step, e.duration_ms, e.attributes, e.source_id, e.line,
        p.piece * 1000000000000000 + e.line * 1000000 + e.part AS position, p.is_selected
    FROM stored_events AS e JOIN piece_links AS p ON p.source_id = e.source_id AND p.wire_run_id = e.run_id
    WHERE e.event_key IS NOT NULL AND e.is_shadow IS NOT TRUE
        AND e.kind IN ('error', 'retry', 'warning', 'compaction', 'opaque', 'auth.expired')
    QUALIFY row_number() OVER (PARTITION BY e.event_key, e.part, p.apart ORDER BY p.place, e.line) = 1
)
SELECT
    run_id, wire, ts, kind, event, status, reason, message, call_id, tool, decision, turn_id, step, duration_ms,
    attributes, source_id, line, position
FROM events
WHERE event_key IS NULL AND is_shadow IS NOT TRUE
    AND kind IN ('error', 'retry', 'warning', 'compaction', 'opaque', 'auth.expired')
UNION ALL
SELECT * EXCLUDE (is_selected) FROM copies WHERE is_selected;
