-- Rate-limit windows
-- row: one window of one limit: limit, length, time of reset
-- from: limit_samples
-- unknown: resets_at NULL = the wire does not say; first_seen NULL = no sample has a time; peak NULL = no sample has
--   a value; rejected_samples NULL = no sample has a status
-- not counted: markers without values; runs that are not counted, unless the run that counts cannot speak of limits.
--   Wires that cannot speak of limits have no row: see coverage
--   peak_used_percent is 0–100 whatever unit was recorded; last_* are those of the last sample by time, then by run.
--   Resets of one window differ by some seconds, and that of an unused one moves on with the clock: a window ends where
--   the next reset is more than ten minutes later. resets_at is the last seen, resets_at_spread_s how far they differ.
CREATE OR REPLACE VIEW rate_limit_windows AS
WITH states AS (
    SELECT run_id, is_counted, dated_at, same_run_as, speaks_limits FROM run_states
), samples AS (
    SELECT
        l.run_id, l.wire, l.ts, l.limit_id, l.limit_name, l.window_minutes, l.unit, l.used_percent, l.resets_at,
        l.status, coalesce(l.ts, s.dated_at) AS seen_at, l.position
    FROM limit_samples AS l
    JOIN states AS s ON s.run_id = l.run_id
    LEFT JOIN states AS o ON o.run_id = s.same_run_as
    WHERE s.is_counted OR o.speaks_limits IS NOT TRUE
), resets AS (
    SELECT limit_id, window_minutes, resets_at FROM samples GROUP BY limit_id, window_minutes, resets_at
), gaps AS (
    SELECT
        *, epoch_us(resets_at) - lag(epoch_us(resets_at), 1) OVER (
            PARTITION BY limit_id, window_minutes ORDER BY resets_at NULLS LAST
        ) > 600000000 AS is_next
    FROM resets
), windows AS (
    SELECT
        limit_id, window_minutes, resets_at,
        CASE WHEN resets_at IS NOT NULL THEN count(*) FILTER (WHERE is_next) OVER (
            PARTITION BY limit_id, window_minutes ORDER BY resets_at NULLS LAST
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) END AS number
    FROM gaps
), placed AS (
    SELECT
        s.*, w.number,
        row_number() OVER (
            PARTITION BY s.limit_id, s.window_minutes, w.number
            ORDER BY s.seen_at NULLS FIRST, s.run_id, s.position
        ) AS sample
    FROM samples AS s
    JOIN windows AS w
        ON w.limit_id IS NOT DISTINCT FROM s.limit_id AND w.window_minutes IS NOT DISTINCT FROM s.window_minutes
        AND w.resets_at IS NOT DISTINCT FROM s.resets_at
)
SELECT
    limit_id, max(limit_name) AS limit_name, window_minutes, arg_max(resets_at, sample) AS resets_at,
    CAST((epoch_us(max(resets_at)) - epoch_us(min(resets_at))) // 1000000 AS BIGINT) AS resets_at_spread_s,
    min(ts) AS first_seen, max(ts) AS last_seen,
    count(*) AS samples, max(used_percent) AS peak_used_percent,
    arg_max(used_percent, sample) FILTER (WHERE used_percent IS NOT NULL) AS last_used_percent,
    min(unit) AS recorded_unit,
    arg_max(status, sample) FILTER (WHERE status IS NOT NULL) AS last_status,
    CASE WHEN count(status) > 0 THEN count(*) FILTER (WHERE status LIKE '%reject%') END AS rejected_samples,
    count(DISTINCT run_id) AS runs, min(wire) AS wire
FROM placed
GROUP BY limit_id, window_minutes, number;
