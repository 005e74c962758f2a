-- Retries
-- row: one record that a model request failed and was to be tried again
-- from: incidents of kind retry
-- unknown: NULL = the record did not say
-- not counted: requests that failed without a record
CREATE OR REPLACE VIEW retries AS
SELECT run_id, wire, ts, turn_id, step, status, reason, message, event, source_id, line, position
FROM incidents
WHERE kind = 'retry';
