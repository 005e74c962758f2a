-- What runs cost
-- row: a range of cost by the vendor's own figure, and the runs in it
-- from: run_figures
-- unknown: runs that do not say stand in no range: see coverage
-- not counted: runs with is_counted false; agents that another run started
-- by: none
-- params: since, until, wire, run
-- picture: histogram at_least_usd below_usd runs p50_usd p90_usd p95_usd p99_usd
--   Ranges rise by 1, 1.5, 2, 3, 4, 5, 7, 10; at_least 0, below 0 are the runs that say 0. p50 to p99
--   are those of all runs that say, the same in each row. runs_at_least: of the runs, those whose true
--   figure may be higher.
CREATE OR REPLACE VIEW report_run_costs AS
WITH said AS (
    SELECT value, is_lower_bound IS TRUE AS may_be_more
    FROM run_figures
    WHERE measure = 'cost_usd' AND value >= 0
), decades AS (
    SELECT value, may_be_more, CASE WHEN value > 0 THEN power(10.0, floor(log10(value))) ELSE 0.0 END AS decade
    FROM said
), ranges AS (
    SELECT
        value, may_be_more,
        CASE
            WHEN value < 1.5 * decade THEN 1
            WHEN value < 2 * decade THEN 1.5
            WHEN value < 3 * decade THEN 2
            WHEN value < 4 * decade THEN 3
            WHEN value < 5 * decade THEN 4
            WHEN value < 7 * decade THEN 5
            ELSE 7
        END * decade AS low,
        CASE
            WHEN value < 1.5 * decade THEN 1.5
            WHEN value < 2 * decade THEN 2
            WHEN value < 3 * decade THEN 3
            WHEN value < 4 * decade THEN 4
            WHEN value < 5 * decade THEN 5
            WHEN value < 7 * decade THEN 7
            ELSE 10
        END * decade AS high
    FROM decades
), percentiles AS (
    SELECT
        quantile_cont(value, 0.5) AS p50, quantile_cont(value, 0.9) AS p90, quantile_cont(value, 0.95) AS p95,
        quantile_cont(value, 0.99) AS p99, bool_or(may_be_more) AS may_be_more
    FROM said
), counted AS (
    SELECT low, high, count(*) AS runs, count(*) FILTER (WHERE may_be_more) AS runs_at_least
    FROM ranges
    GROUP BY low, high
)
SELECT
    c.low AS at_least_usd, c.high AS below_usd, c.runs, c.runs_at_least, p.p50 AS p50_usd, p.p90 AS p90_usd,
    p.p95 AS p95_usd, p.p99 AS p99_usd, p.may_be_more AS p50_usd_is_lower_bound,
    p.may_be_more AS p90_usd_is_lower_bound, p.may_be_more AS p95_usd_is_lower_bound,
    p.may_be_more AS p99_usd_is_lower_bound
FROM counted AS c CROSS JOIN percentiles AS p
ORDER BY at_least_usd;
