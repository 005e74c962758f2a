-- The pieces of a run hold the lines the ledger says
-- row: one run whose event lines differ; there must be none
-- from: run_states, events
-- unknown: unknown sums are compared as unknown
-- not counted: nothing
CREATE OR REPLACE VIEW check_pieces_of_runs AS
WITH found AS (
    SELECT run_id, count(*) FILTER (WHERE part = 0) AS event_lines FROM events GROUP BY run_id
)
SELECT s.run_id, s.event_lines AS ledger_lines, f.event_lines AS lake_lines
FROM run_states AS s
LEFT JOIN found AS f ON f.run_id = s.run_id
WHERE s.event_lines IS DISTINCT FROM f.event_lines;
