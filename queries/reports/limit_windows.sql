-- Rate-limit windows over time
-- row: one window of one limit
-- from: rate_limit_windows
-- unknown: starts_at, ends_at NULL = no time is known; hit_wall NULL = no sample says how full it was
-- not counted: wires that cannot speak of limits: see coverage
-- by: none
-- params: since, until, wire, run
-- picture: timeline starts_at ends_at limit_window peak_used_percent hit_wall
--   A window lasts from its reset back by its length; where one is not known, from its first to its last sample.
--   hit_wall: a request was rejected, or the limit was used up.
CREATE OR REPLACE VIEW report_limit_windows AS
SELECT
    coalesce(limit_id, 'limit without a name') || CASE
        WHEN window_minutes IS NULL THEN ''
        WHEN window_minutes % 1440 = 0 THEN ', ' || CAST(window_minutes // 1440 AS VARCHAR) || ' d'
        WHEN window_minutes % 60 = 0 THEN ', ' || CAST(window_minutes // 60 AS VARCHAR) || ' h'
        ELSE ', ' || CAST(window_minutes AS VARCHAR) || ' min'
    END AS limit_window,
    limit_id, window_minutes,
    CASE
        WHEN resets_at IS NOT NULL AND window_minutes IS NOT NULL THEN resets_at - window_minutes * INTERVAL 1 MINUTE
        ELSE first_seen
    END AS starts_at,
    CASE WHEN resets_at IS NOT NULL THEN resets_at ELSE last_seen END AS ends_at,
    peak_used_percent,
    CASE
        WHEN rejected_samples > 0 OR peak_used_percent >= 100 THEN true
        WHEN rejected_samples IS NOT NULL OR peak_used_percent IS NOT NULL THEN false
    END AS hit_wall,
    rejected_samples, samples, runs,
    last_status
FROM rate_limit_windows
ORDER BY limit_id, window_minutes, starts_at NULLS LAST;
