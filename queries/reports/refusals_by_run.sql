-- Refused lines by run
-- row: one run with refused lines
-- from: refusals
-- unknown: run_id NULL = no run can be known
-- not counted: unterminated last lines: they are pending
-- by: reason, source, run
-- params: since, until, wire, run
-- picture: bar run_id refusals
CREATE OR REPLACE VIEW report_refusals_by_run AS
SELECT run_id, wire, count(*) AS refusals, count(DISTINCT reason) AS reasons, min(line) AS first_line
FROM refusals
GROUP BY run_id, wire
ORDER BY refusals DESC, run_id;
