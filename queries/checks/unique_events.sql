-- Source, line and part name one event
-- row: one source whose (line, part) stand twice; there must be none
-- from: stored_events
-- unknown: unknown sums are compared as unknown
-- not counted: nothing
CREATE OR REPLACE VIEW check_unique_events AS
SELECT source_id, count(*) AS times
FROM stored_events
GROUP BY source_id
HAVING count(*) <> count(DISTINCT line * 1000000 + part);
