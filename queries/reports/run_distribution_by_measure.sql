-- Distribution of the figures of runs by measure
-- row: one measure, over all runs
-- from: run_figures
-- unknown: runs_unknown = runs whose record does not say, left out of the figures; figures NULL = no run says
-- not counted: runs with is_counted false; agents that another run started
-- by: measure, wire, model, variant
-- params: since, until, wire, run
-- picture: none
--   is_lower_bound: some of its runs were cut, so that every figure but runs may truly be higher.
CREATE OR REPLACE VIEW report_run_distribution_by_measure AS
WITH sums AS (
    SELECT
        measure, count(value) AS runs, count(*) - count(value) AS runs_unknown,
        min(value) AS min_value, quantile_cont(value, 0.5) AS p50, quantile_cont(value, 0.9) AS p90,
        quantile_cont(value, 0.95) AS p95, quantile_cont(value, 0.99) AS p99, max(value) AS max_value,
        CAST(sum(TRY_CAST(value AS DECIMAL(28, 10))) AS DOUBLE) / nullif(count(value), 0) AS mean_value,
        bool_or(is_lower_bound) FILTER (WHERE value IS NOT NULL) AS is_lower_bound, place
    FROM run_figures
    GROUP BY measure, place
)
SELECT
    measure, runs, runs_unknown, min_value, p50, p90, p95, p99, max_value, mean_value, is_lower_bound
FROM sums
ORDER BY place;
