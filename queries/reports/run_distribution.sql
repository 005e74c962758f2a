-- Distribution of the figures of runs
-- row: wire × model × variant × measure
-- from: run_distribution
-- unknown: runs_unknown = runs whose record does not say, left out of the figures; figures NULL = no run says
-- not counted: runs with is_counted false; agents that another run started
-- by: measure, wire, model, variant
-- params: since, until, wire, run
-- picture: none
--   is_lower_bound: some of its runs were cut, so that every figure but runs may truly be higher.
CREATE OR REPLACE VIEW report_run_distribution AS
SELECT
    measure, wire, model, variant, runs, runs_unknown, min_value, p50, p90, p95, p99, max_value, mean_value,
    is_lower_bound
FROM run_distribution
ORDER BY place, wire, model NULLS LAST, variant NULLS LAST;
