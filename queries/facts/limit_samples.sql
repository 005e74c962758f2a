-- Rate-limit samples
-- row: one observation of one limit
-- from: events of kind rate_limit that carry a value
-- unknown: NULL = the record did not say; a run without rows had none only if its stream speaks of limits (runs.speaks)
-- not counted: markers without any value
CREATE OR REPLACE VIEW limit_samples AS
SELECT
    run_id, wire, ts, limit_id, limit_name, limit_window_minutes AS window_minutes, limit_used AS used,
    limit_unit AS unit,
    CASE limit_unit WHEN 'fraction' THEN round(limit_used * 100, 6) WHEN 'percent' THEN limit_used END AS used_percent,
    limit_resets_at AS resets_at, limit_status AS status, source_id, line, part, position
FROM events
WHERE kind = 'rate_limit' AND is_shadow IS NOT TRUE
    AND (limit_id IS NOT NULL OR limit_used IS NOT NULL OR limit_status IS NOT NULL OR limit_resets_at IS NOT NULL);
