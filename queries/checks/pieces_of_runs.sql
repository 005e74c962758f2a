-- The pieces of a run hold the lines the ledger says
-- row: one run whose event lines differ; there must be none
-- from: run_states, events
-- unknown: unknown sums are compared as unknown
-- not counted: nothing
--   A line's first row is part 0, unless several records are glued together on it: then the first row of a run may be
--   a later part, and the lines of that run are counted one by one.
CREATE OR REPLACE VIEW check_pieces_of_runs AS
WITH firsts AS (
    SELECT run_id, count(*) FILTER (WHERE part = 0) AS event_lines FROM events GROUP BY run_id
), doubtful AS (
    SELECT s.run_id, s.event_lines
    FROM run_states AS s
    LEFT JOIN firsts AS f ON f.run_id = s.run_id
    WHERE s.event_lines IS DISTINCT FROM f.event_lines
), found AS (
    SELECT e.run_id, count(DISTINCT e.position // 1000000) AS event_lines
    FROM events AS e
    SEMI JOIN doubtful AS d ON d.run_id = e.run_id
    GROUP BY e.run_id
)
SELECT d.run_id, d.event_lines AS ledger_lines, f.event_lines AS lake_lines
FROM doubtful AS d
LEFT JOIN found AS f ON f.run_id = d.run_id
WHERE d.event_lines IS DISTINCT FROM f.event_lines;
