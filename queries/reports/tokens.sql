-- Tokens and cost by day and model
-- row: one day (UTC) and model
-- from: token_usage
-- unknown: day NULL = no time known; model NULL = not named; a figure NULL = no record says it
-- not counted: runs with is_counted false; the tokens of side calls (their cost is counted)
-- by: day
-- params: since, until, wire, run
-- picture: column day total_tokens model; column day cost_usd model
CREATE OR REPLACE VIEW report_tokens AS
WITH sums AS (
    SELECT
        day, model, count(DISTINCT run_id) AS runs,
        sum(input_tokens) FILTER (WHERE NOT is_side_call) AS input_tokens,
        sum(cache_read_tokens) FILTER (WHERE NOT is_side_call) AS cache_read_tokens,
        sum(output_tokens) FILTER (WHERE NOT is_side_call) AS output_tokens,
        sum(TRY_CAST(cost_usd AS DECIMAL(18, 10))) AS cost, bool_or(NOT run_has_cost) AS cost_is_lower_bound,
        bool_or(is_lower_bound) FILTER (WHERE NOT is_side_call) AS is_lower_bound
    FROM token_usage
    WHERE is_counted
    GROUP BY day, model
)
SELECT
    day, model, runs, CAST(input_tokens AS BIGINT) AS input_tokens,
    CAST(cache_read_tokens AS BIGINT) AS cache_read_tokens, CAST(output_tokens AS BIGINT) AS output_tokens,
    CAST(input_tokens AS BIGINT) + CAST(output_tokens AS BIGINT) AS total_tokens,
    CAST(cost AS DOUBLE) AS cost_usd, cost_is_lower_bound, is_lower_bound
FROM sums
ORDER BY day NULLS LAST, total_tokens DESC NULLS LAST, model;
