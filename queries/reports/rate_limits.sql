-- Rate limits
-- row: one window of one limit
-- from: rate_limit_windows
-- unknown: resets_at NULL = the wire does not say; first_seen NULL = no sample has a time
-- not counted: wires that cannot speak of limits: see coverage
-- by: none
-- params: since, until, wire, run
-- picture: line resets_at peak_used_percent limit_id
CREATE OR REPLACE VIEW report_rate_limits AS
SELECT
    limit_id, window_minutes, resets_at, peak_used_percent, last_used_percent, last_status, rejected_samples, samples,
    runs, first_seen, last_seen, recorded_unit
FROM rate_limit_windows
ORDER BY limit_id, resets_at NULLS LAST;
