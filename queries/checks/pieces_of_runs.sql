-- The pieces of a run hold the lines the ledger says
-- row: one run whose event lines differ; there must be none
-- from: run_states, events
-- unknown: unknown sums are compared as unknown
-- not counted: nothing
--   Records of several runs may be glued on one line, each at its own offset: it is a line of all of these runs.
CREATE OR REPLACE VIEW check_pieces_of_runs AS
WITH records AS (
    SELECT source_id, line, byte_offset, arg_min(run_id, part) AS run_id
    FROM events
    GROUP BY source_id, line, byte_offset
), found AS (
    SELECT run_id, count(*) AS event_lines
    FROM (SELECT run_id, source_id, line FROM records GROUP BY run_id, source_id, line)
    GROUP BY run_id
)
SELECT s.run_id, s.event_lines AS ledger_lines, f.event_lines AS lake_lines
FROM run_states AS s
LEFT JOIN found AS f ON f.run_id = s.run_id
WHERE s.event_lines IS DISTINCT FROM f.event_lines;
