-- Compactions
-- row: one compaction of a context
-- from: compactions
-- unknown: NULL = the record did not say
-- not counted: runs with is_counted false
-- by: none
-- params: since, until, wire, run
-- picture: none
CREATE OR REPLACE VIEW report_compactions AS
SELECT run_id, wire, ts, trigger, tokens_before, tokens_after, tokens_cut, duration_ms
FROM compactions
WHERE is_counted
ORDER BY run_id, position;
