-- Token usage by run
-- row: one run that has usage
-- from: token_usage
-- unknown: a sum is NULL where no row says the figure
-- not counted: the tokens of side calls; their cost is counted
CREATE OR REPLACE VIEW token_usage_by_run AS
WITH sums AS (
    SELECT
        run_id, wire, sum(usage_rows) AS usage_rows,
        sum(input_tokens) FILTER (WHERE NOT is_side_call) AS input_tokens,
        sum(uncached_input_tokens) FILTER (WHERE NOT is_side_call) AS uncached_input_tokens,
        sum(cache_read_tokens) FILTER (WHERE NOT is_side_call) AS cache_read_tokens,
        sum(cache_write_tokens) FILTER (WHERE NOT is_side_call) AS cache_write_tokens,
        sum(cache_write_5m_tokens) FILTER (WHERE NOT is_side_call) AS cache_write_5m_tokens,
        sum(cache_write_1h_tokens) FILTER (WHERE NOT is_side_call) AS cache_write_1h_tokens,
        sum(output_tokens) FILTER (WHERE NOT is_side_call) AS output_tokens,
        sum(reasoning_tokens) FILTER (WHERE NOT is_side_call) AS reasoning_tokens,
        sum(TRY_CAST(cost_usd AS DECIMAL(18, 10))) AS cost,
        bool_or(is_lower_bound) FILTER (WHERE NOT is_side_call) AS is_lower_bound, bool_and(is_counted) AS is_counted
    FROM token_usage
    GROUP BY run_id, wire
)
SELECT
    run_id, wire, CAST(usage_rows AS BIGINT) AS usage_rows,
    CAST(input_tokens AS BIGINT) AS input_tokens,
    CAST(uncached_input_tokens AS BIGINT) AS uncached_input_tokens,
    CAST(cache_read_tokens AS BIGINT) AS cache_read_tokens,
    CAST(cache_write_tokens AS BIGINT) AS cache_write_tokens,
    CAST(cache_write_5m_tokens AS BIGINT) AS cache_write_5m_tokens,
    CAST(cache_write_1h_tokens AS BIGINT) AS cache_write_1h_tokens,
    CAST(output_tokens AS BIGINT) AS output_tokens,
    CAST(reasoning_tokens AS BIGINT) AS reasoning_tokens,
    CAST(input_tokens AS BIGINT) + CAST(output_tokens AS BIGINT) AS total_tokens,
    CAST(cost AS DOUBLE) AS cost_usd, is_lower_bound, is_counted
FROM sums;
