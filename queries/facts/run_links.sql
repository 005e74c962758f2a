-- Views of one session
-- row: one run, and the other run that shows the same work
-- from: piece_links
-- unknown: same_run_as NULL = no other run shows its work; view_rank NULL = the run states none (a harness)
-- not counted: second copies of a run, and runs outside the filters
--   is_counted false: another run stands for all of it. is_replaced: a harness's run does. How runs are linked is told
--   in piece_links.
CREATE OR REPLACE VIEW run_links AS
SELECT
    run_id, min(wire) AS wire, min(session_id) AS session_id, min(view_rank) AS view_rank,
    min(same_run_as) AS same_run_as, bool_and(is_counted) AS is_counted, bool_or(is_replaced) AS is_replaced
FROM piece_links
WHERE is_selected
GROUP BY run_id;
