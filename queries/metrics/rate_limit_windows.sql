-- Rate-limit windows
-- row: one window of one limit: limit, length, time of reset
-- from: limit_samples
-- unknown: resets_at NULL = the wire does not say; first_seen NULL = no sample has a time; peak NULL = no sample has
--   a value; rejected_samples NULL = no sample has a status
-- not counted: markers without values. Wires that cannot speak of limits have no row: see coverage
--   peak_used_percent is 0–100 whatever unit was recorded; last_* are those of the last sample by time, then by run.
CREATE OR REPLACE VIEW rate_limit_windows AS
WITH samples AS (
    SELECT
        l.run_id, l.wire, l.ts, l.limit_id, l.limit_name, l.window_minutes, l.unit, l.used_percent, l.resets_at,
        l.status,
        row_number() OVER (
            PARTITION BY l.limit_id, l.window_minutes, l.resets_at
            ORDER BY coalesce(l.ts, s.last_seen_at) NULLS FIRST, l.run_id, l.position
        ) AS sample
    FROM limit_samples AS l
    JOIN run_states AS s ON s.run_id = l.run_id
    WHERE s.is_counted
)
SELECT
    limit_id, max(limit_name) AS limit_name, window_minutes, resets_at, min(ts) AS first_seen, max(ts) AS last_seen,
    count(*) AS samples, max(used_percent) AS peak_used_percent,
    arg_max(used_percent, sample) FILTER (WHERE used_percent IS NOT NULL) AS last_used_percent,
    min(unit) AS recorded_unit,
    arg_max(status, sample) FILTER (WHERE status IS NOT NULL) AS last_status,
    CASE WHEN count(status) > 0 THEN count(*) FILTER (WHERE status LIKE '%reject%') END AS rejected_samples,
    count(DISTINCT run_id) AS runs, min(wire) AS wire
FROM samples
GROUP BY limit_id, window_minutes, resets_at;
