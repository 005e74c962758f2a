-- The sums by run, by day and by model agree
-- row: one way of adding up that gives another total than the others; there must be none
-- from: run_metrics, token_usage_by_day, token_usage_by_model
-- unknown: unknown sums are compared as unknown
-- not counted: side calls' tokens; runs with is_counted false
CREATE OR REPLACE VIEW check_sums_agree AS
WITH totals AS (
    SELECT
        'run' AS sum_by, sum(input_tokens) AS input_tokens, sum(output_tokens) AS output_tokens,
        sum(cache_read_tokens) AS cache_read_tokens, sum(cache_write_tokens) AS cache_write_tokens,
        sum(reasoning_tokens) AS reasoning_tokens,
        sum(TRY_CAST(cost_usd AS DECIMAL(18, 10))) AS cost
    FROM run_metrics WHERE is_counted
    UNION ALL
    SELECT
        'day' AS sum_by, sum(input_tokens) AS input_tokens, sum(output_tokens) AS output_tokens,
        sum(cache_read_tokens) AS cache_read_tokens, sum(cache_write_tokens) AS cache_write_tokens,
        sum(reasoning_tokens) AS reasoning_tokens,
        sum(TRY_CAST(cost_usd AS DECIMAL(18, 10))) AS cost
    FROM token_usage_by_day
    UNION ALL
    SELECT
        'model', sum(input_tokens) FILTER (WHERE NOT is_side_call), sum(output_tokens) FILTER (WHERE NOT is_side_call),
        sum(cache_read_tokens) FILTER (WHERE NOT is_side_call), sum(cache_write_tokens) FILTER (WHERE NOT is_side_call),
        sum(reasoning_tokens) FILTER (WHERE NOT is_side_call), sum(TRY_CAST(cost_usd AS DECIMAL(18, 10)))
    FROM token_usage_by_model
)
SELECT
    t.sum_by, CAST(t.input_tokens AS BIGINT) AS input_tokens, CAST(t.output_tokens AS BIGINT) AS output_tokens,
    CAST(t.cache_read_tokens AS BIGINT) AS cache_read_tokens,
    CAST(t.cache_write_tokens AS BIGINT) AS cache_write_tokens,
    CAST(t.reasoning_tokens AS BIGINT) AS reasoning_tokens, CAST(t.cost AS DOUBLE) AS cost_usd
FROM totals AS t
JOIN totals AS r ON r.sum_by = 'run'
WHERE t.input_tokens IS DISTINCT FROM r.input_tokens OR t.output_tokens IS DISTINCT FROM r.output_tokens
    OR t.cache_read_tokens IS DISTINCT FROM r.cache_read_tokens
    OR t.cache_write_tokens IS DISTINCT FROM r.cache_write_tokens
    OR t.reasoning_tokens IS DISTINCT FROM r.reasoning_tokens
    OR abs(t.cost - r.cost) > 0.000001 OR (t.cost IS NULL) <> (r.cost IS NULL);
