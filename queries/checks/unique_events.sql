-- Source, line and part name one event
-- row: one (line, part) of a source that stands twice; there must be none
-- from: stored_events
-- unknown: unknown sums are compared as unknown
-- not counted: nothing
CREATE OR REPLACE VIEW check_unique_events AS
SELECT source_id, line, part, count(*) AS times
FROM stored_events
GROUP BY source_id, line, part
HAVING count(*) > 1;
