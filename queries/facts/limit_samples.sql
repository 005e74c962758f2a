-- Rate-limit samples
-- row: one observation of one limit
-- from: events of kind rate_limit that carry a value; piece_links for copies
-- unknown: NULL = the record did not say; a run without rows had none only if its stream speaks of limits (runs.speaks)
-- not counted: markers without any value; copies of a record (event_key): the run of the oldest source has it
CREATE OR REPLACE VIEW limit_samples AS
WITH samples AS (
    SELECT
        run_id, wire, ts, limit_id, limit_name, limit_window_minutes, limit_used, limit_unit, limit_resets_at,
        limit_status, source_id, line, part, position
    FROM events
    WHERE event_key IS NULL AND kind = 'rate_limit' AND is_shadow IS NOT TRUE AND (
        limit_id IS NOT NULL OR limit_used IS NOT NULL OR limit_status IS NOT NULL OR limit_resets_at IS NOT NULL
    )
), first_copies AS (
    SELECT
        p.run_id, e.wire, e.ts, e.limit_id, e.limit_name, e.limit_window_minutes, e.limit_used, e.limit_unit,
        e.limit_resets_at, e.limit_status, e.source_id, e.line, e.part,
        p.piece * 1000000000000000 + e.line * 1000000 + e.part AS position, p.is_selected
    FROM stored_events AS e JOIN piece_links AS p ON p.source_id = e.source_id AND p.wire_run_id = e.run_id
    WHERE e.event_key IS NOT NULL AND e.kind = 'rate_limit' AND e.is_shadow IS NOT TRUE AND (
        e.limit_id IS NOT NULL OR e.limit_used IS NOT NULL OR e.limit_status IS NOT NULL
        OR e.limit_resets_at IS NOT NULL
    )
    QUALIFY row_number() OVER (PARTITION BY e.event_key, e.part, p.apart ORDER BY p.place, e.line) = 1
)
SELECT
    run_id, wire, ts, limit_id, limit_name, limit_window_minutes AS window_minutes, limit_used AS used,
    limit_unit AS unit,
    CASE limit_unit WHEN 'fraction' THEN round(limit_used * 100, 6) WHEN 'percent' THEN limit_used END AS used_percent,
    limit_resets_at AS resets_at, limit_status AS status, source_id, line, part, position
FROM (FROM samples UNION ALL SELECT * EXCLUDE (is_selected) FROM first_copies WHERE is_selected);
