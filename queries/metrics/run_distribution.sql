-- Distribution of the figures of runs
-- row: wire × model × variant × measure
-- from: run_figures
-- unknown: runs_unknown = runs whose record does not say, left out of the figures; figures NULL = no run says
-- not counted: runs with is_counted false; agents that another run started
--   is_lower_bound: some of its runs were cut, so that every figure but runs may truly be higher.
CREATE OR REPLACE VIEW run_distribution AS
SELECT
    wire, model, variant, measure, count(value) AS runs, count(*) - count(value) AS runs_unknown,
    min(value) AS min_value, quantile_cont(value, 0.5) AS p50, quantile_cont(value, 0.9) AS p90,
    quantile_cont(value, 0.95) AS p95, quantile_cont(value, 0.99) AS p99, max(value) AS max_value,
    CAST(sum(TRY_CAST(value AS DECIMAL(28, 10))) AS DOUBLE) / nullif(count(value), 0) AS mean_value,
    bool_or(is_lower_bound) FILTER (WHERE value IS NOT NULL) AS is_lower_bound, place
FROM run_figures
GROUP BY wire, model, variant, measure, place;
