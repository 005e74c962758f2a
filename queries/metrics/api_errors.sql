-- Errors and retries of requests
-- row: wire × kind (error, retry) × status × reason × message
-- from: incidents of kinds error and retry, run_links
-- unknown: NULL = the record did not say; first_at and last_at NULL = no record has a time
-- not counted: runs with is_counted false; requests that failed without a record
CREATE OR REPLACE VIEW api_errors AS
SELECT
    i.wire, i.kind, i.status, i.reason, i.message, count(*) AS records, count(DISTINCT i.run_id) AS runs,
    max(CAST(i.attributes->>'attempt' AS BIGINT)) AS highest_attempt, min(i.ts) AS first_at, max(i.ts) AS last_at
FROM incidents AS i JOIN run_links AS l ON l.run_id = i.run_id
WHERE i.kind IN ('error', 'retry') AND l.is_counted
GROUP BY i.wire, i.kind, i.status, i.reason, i.message;
