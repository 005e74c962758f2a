-- Token usage by model
-- row: one model, and whether it is a side call
-- from: token_usage
-- unknown: model NULL = not named; a sum is NULL where no row says the figure
-- not counted: runs with is_counted false. Side calls stand in rows of their own, beside the sum of tokens
CREATE OR REPLACE VIEW token_usage_by_model AS
WITH sums AS (
    SELECT
        model, is_side_call, count(DISTINCT run_id) AS runs, sum(usage_rows) AS usage_rows,
        sum(input_tokens) AS input_tokens,
        sum(uncached_input_tokens) AS uncached_input_tokens,
        sum(cache_read_tokens) AS cache_read_tokens,
        sum(cache_write_tokens) AS cache_write_tokens,
        sum(cache_write_5m_tokens) AS cache_write_5m_tokens,
        sum(cache_write_1h_tokens) AS cache_write_1h_tokens,
        sum(output_tokens) AS output_tokens,
        sum(reasoning_tokens) AS reasoning_tokens,
        sum(TRY_CAST(cost_usd AS DECIMAL(18, 10))) AS cost,
        bool_or(NOT run_has_cost) AS cost_is_lower_bound,
        bool_or(is_lower_bound) AS is_lower_bound
    FROM token_usage
    WHERE is_counted
    GROUP BY model, is_side_call
)
SELECT
    model, is_side_call, runs, CAST(usage_rows AS BIGINT) AS usage_rows,
    CAST(input_tokens AS BIGINT) AS input_tokens,
    CAST(uncached_input_tokens AS BIGINT) AS uncached_input_tokens,
    CAST(cache_read_tokens AS BIGINT) AS cache_read_tokens,
    CAST(cache_write_tokens AS BIGINT) AS cache_write_tokens,
    CAST(cache_write_5m_tokens AS BIGINT) AS cache_write_5m_tokens,
    CAST(cache_write_1h_tokens AS BIGINT) AS cache_write_1h_tokens,
    CAST(output_tokens AS BIGINT) AS output_tokens,
    CAST(reasoning_tokens AS BIGINT) AS reasoning_tokens,
    CAST(input_tokens AS BIGINT) + CAST(output_tokens AS BIGINT) AS total_tokens,
    CAST(cost AS DOUBLE) AS cost_usd, cost_is_lower_bound, is_lower_bound
FROM sums;
