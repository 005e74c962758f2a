-- Every run has its figures once
-- row: one run without figures, or with two rows of them; there must be none
-- from: runs, run_metrics
-- unknown: unknown sums are compared as unknown
-- not counted: nothing
CREATE OR REPLACE VIEW check_metrics_cover_runs AS
SELECT r.run_id, count(m.run_id) AS times
FROM runs AS r
LEFT JOIN run_metrics AS m ON m.run_id = r.run_id
GROUP BY r.run_id
HAVING count(m.run_id) <> 1;
