-- Token usage
-- row: run × model × day, and whether it is a side call
-- from: usage
-- unknown: model NULL = not named; day NULL = no time known; a sum is NULL where no row says the figure; run_has_cost
--   false = no record of the run names a cost
-- not counted: what usage does not count. is_side_call rows stand beside the sums of tokens, not in them; their cost is
--   part of the run's. Runs with is_counted false show work that another run shows too: leave them out of totals
CREATE OR REPLACE VIEW token_usage AS
WITH sums AS (
    SELECT
        run_id, wire, model, day, is_side_call, is_counted, count(*) AS usage_rows,
        sum(input_tokens) AS input_tokens, sum(uncached_input_tokens) AS uncached_input_tokens,
        sum(cache_read_tokens) AS cache_read_tokens, sum(cache_write_tokens) AS cache_write_tokens,
        sum(cache_write_5m_tokens) AS cache_write_5m_tokens, sum(cache_write_1h_tokens) AS cache_write_1h_tokens,
        sum(output_tokens) AS output_tokens,
        sum(reasoning_tokens) AS reasoning_tokens, sum(TRY_CAST(cost_usd AS DECIMAL(18, 10))) AS cost,
        bool_or(is_lower_bound) AS is_lower_bound
    FROM usage
    GROUP BY run_id, wire, model, day, is_side_call, is_counted
)
SELECT
    run_id, wire, model, day, is_side_call, usage_rows,
    CAST(input_tokens AS BIGINT) AS input_tokens,
    CAST(uncached_input_tokens AS BIGINT) AS uncached_input_tokens,
    CAST(cache_read_tokens AS BIGINT) AS cache_read_tokens,
    CAST(cache_write_tokens AS BIGINT) AS cache_write_tokens,
    CAST(cache_write_5m_tokens AS BIGINT) AS cache_write_5m_tokens,
    CAST(cache_write_1h_tokens AS BIGINT) AS cache_write_1h_tokens,
    CAST(output_tokens AS BIGINT) AS output_tokens,
    CAST(reasoning_tokens AS BIGINT) AS reasoning_tokens,
    CAST(input_tokens AS BIGINT) + CAST(output_tokens AS BIGINT) AS total_tokens,
    CAST(cost AS DOUBLE) AS cost_usd, bool_or(cost IS NOT NULL) OVER (PARTITION BY run_id) AS run_has_cost,
    is_lower_bound, is_counted
FROM sums;
