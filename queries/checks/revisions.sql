-- A source has one newest revision
-- row: one source with two; there must be none
-- from: sources
-- unknown: unknown sums are compared as unknown
-- not counted: nothing
CREATE OR REPLACE VIEW check_revisions AS
SELECT source_id, revision, count(*) AS times
FROM sources
GROUP BY source_id, revision
HAVING count(*) > 1;
