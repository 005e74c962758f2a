-- Errors and retries of requests
-- row: wire × kind (error, retry) × status × reason × message
-- from: api_errors
-- unknown: NULL = the record did not say
-- not counted: runs with is_counted false
-- by: none
-- params: since, until, wire, run
-- picture: bar message records
CREATE OR REPLACE VIEW report_api_errors AS
SELECT wire, kind, status, reason, message, records, runs, highest_attempt, first_at, last_at
FROM api_errors
ORDER BY records DESC, wire, kind, status, reason, message;
