-- Warnings by code
-- row: wire × kind × code
-- from: warnings
-- unknown: code NULL = the record names none
-- not counted: retries
-- by: run
-- params: since, until, wire, run
-- picture: bar code records
CREATE OR REPLACE VIEW report_warnings AS
SELECT
    wire, kind, code, count(*) AS records, count(DISTINCT run_id) AS runs, min(ts) AS first_at, max(ts) AS last_at,
    min(message) AS example
FROM warnings
GROUP BY wire, kind, code
ORDER BY records DESC, wire, kind, code;
