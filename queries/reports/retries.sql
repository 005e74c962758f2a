-- Retries
-- row: one run with retries
-- from: retries
-- unknown: first_at NULL = no record has a time
-- not counted: requests that failed without a record
-- by: none
-- params: since, until, wire, run
-- picture: bar run_id retries
CREATE OR REPLACE VIEW report_retries AS
SELECT
    run_id, wire, count(*) AS retries, min(ts) AS first_at, max(ts) AS last_at, min(status) AS status,
    min(message) AS example
FROM retries
GROUP BY run_id, wire
ORDER BY retries DESC, run_id;
