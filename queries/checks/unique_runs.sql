-- A run id names one run
-- row: one run id that stands twice; there must be none
-- from: runs
-- unknown: unknown sums are compared as unknown
-- not counted: nothing
CREATE OR REPLACE VIEW check_unique_runs AS
SELECT run_id, count(*) AS times
FROM runs
GROUP BY run_id
HAVING count(*) > 1 OR run_id IS NULL;
