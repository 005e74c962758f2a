-- Every event belongs to a run that the ledger names
-- row: one run id of events that no source lists; there must be none
-- from: events, run_pieces
-- unknown: unknown sums are compared as unknown
-- not counted: nothing
CREATE OR REPLACE VIEW check_events_have_runs AS
SELECT run_id, count(*) AS events
FROM events
ANTI JOIN (SELECT run_id FROM run_pieces WHERE NOT is_copy) AS p USING (run_id)
GROUP BY run_id;
