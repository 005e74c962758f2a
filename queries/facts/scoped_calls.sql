-- Records of calls with lake-wide ids
-- row: one record of a call whose id is unique over all runs of a scope (call_scope), with the run that owns the call
-- from: stored_events of kinds tool.requested, tool.started, tool.finished, and decisions on a call; piece_links
-- unknown: NULL = the record did not say; tool of a decision is the call's where the record names none
-- not counted: shadows, second copies of a run
--   A call that several runs show (a copy, a fork, a replay) belongs to the one that opens it in the oldest source,
--   first to one whose work a harness's run shows. A run that is not counted owns its own view of its calls. position
--   orders the records of a call, those of other runs after the owner's; record_position is that in the record's run.
CREATE OR REPLACE VIEW scoped_calls AS
WITH links AS (
    SELECT
        source_id, wire_run_id, run_id, run_number, piece, place, apart, is_selected,
        CASE WHEN is_replaced THEN place - 1000000000 WHEN apart IS NULL THEN place END AS claim
    FROM piece_links
), records AS NOT MATERIALIZED (
    SELECT
        p.run_id, e.wire, e.source_id, e.line, e.part, e.ts, e.event, e.kind, e.call_id, e.call_scope,
        e.parent_call_id, e.turn_id, e.tool, e.decision, e.decided_by, e.evidence, e.status, e.is_error, e.exit_code,
        e.reason, e.duration_ms, p.is_selected, p.place, p.apart, p.claim, p.run_number,
        p.piece * 1000000000000000 + e.line * 1000000 + e.part AS record_position
    FROM stored_events AS e JOIN links AS p ON p.source_id = e.source_id AND p.wire_run_id = e.run_id
    WHERE e.call_scope IS NOT NULL AND e.call_id IS NOT NULL AND e.is_shadow IS NOT TRUE
        AND (e.kind IN ('tool.requested', 'tool.started', 'tool.finished') OR e.decision IS NOT NULL)
), openings AS (
    SELECT
        call_scope, call_id, min(tool) FILTER (WHERE kind IN ('tool.requested', 'tool.started')) AS tool,
        min(claim) FILTER (WHERE kind IN ('tool.requested', 'tool.started')) AS claim
    FROM records
    GROUP BY call_scope, call_id
    HAVING min(run_number) <> max(run_number) OR bool_or(decision IS NOT NULL AND tool IS NULL)
), owned AS (
    SELECT o.call_scope, o.call_id, o.tool, p.run_id, p.is_selected
    FROM openings AS o LEFT JOIN links AS p ON p.claim = o.claim
)
SELECT
    CASE WHEN r.apart IS NULL THEN coalesce(o.run_id, r.run_id) ELSE r.run_id END AS run_id, r.wire, r.call_id,
    CAST(1 AS BIGINT) AS call_occurrence, r.call_scope,
    CASE
        WHEN r.apart IS NOT NULL OR o.run_id IS NULL OR o.run_id = r.run_id THEN r.record_position
        ELSE 4000000000000000000 + r.place * 1000000000000 + r.line * 1000 + r.part
    END AS position,
    r.ts, r.event, r.kind, coalesce(r.tool, o.tool) AS tool, r.parent_call_id, r.turn_id, r.decision, r.decided_by,
    r.evidence, r.status, r.is_error, r.exit_code, r.reason, r.duration_ms, r.source_id, r.line, r.part,
    r.record_position
FROM records AS r
LEFT JOIN owned AS o ON o.call_scope = r.call_scope AND o.call_id = r.call_id
WHERE CASE WHEN r.apart IS NULL AND o.run_id IS NOT NULL THEN o.is_selected ELSE r.is_selected END;
