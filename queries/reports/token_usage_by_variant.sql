-- Token usage by variant
-- row: one variant
-- from: run_metrics
-- unknown: variant NULL = the wire or the start record names none; a figure NULL = no record says it
-- not counted: runs with is_counted false, tokens of side calls (their cost is counted)
-- by: run, model, day, wire, variant, task, directory
-- params: since, until, wire, run
-- picture: bar variant total_tokens
CREATE OR REPLACE VIEW report_token_usage_by_variant AS
WITH sums AS (
    SELECT
        variant, count(*) AS runs, count(input_tokens) AS runs_with_tokens,
        sum(input_tokens) AS input_tokens,
        sum(uncached_input_tokens) AS uncached_input_tokens,
        sum(cache_read_tokens) AS cache_read_tokens,
        sum(cache_write_tokens) AS cache_write_tokens,
        sum(output_tokens) AS output_tokens,
        sum(reasoning_tokens) AS reasoning_tokens,
        sum(TRY_CAST(cost_usd AS DECIMAL(18, 10))) AS cost, bool_or(cost_usd IS NULL) AS cost_is_lower_bound,
        bool_or(tokens_are_lower_bound) AS is_lower_bound
    FROM run_metrics
    WHERE is_counted
    GROUP BY variant
)
SELECT
    variant, runs, runs_with_tokens,
    CAST(input_tokens AS BIGINT) AS input_tokens,
    CAST(uncached_input_tokens AS BIGINT) AS uncached_input_tokens,
    CAST(cache_read_tokens AS BIGINT) AS cache_read_tokens,
    CAST(cache_write_tokens AS BIGINT) AS cache_write_tokens,
    CAST(output_tokens AS BIGINT) AS output_tokens,
    CAST(reasoning_tokens AS BIGINT) AS reasoning_tokens,
    CAST(input_tokens AS BIGINT) + CAST(output_tokens AS BIGINT) AS total_tokens,
    CAST(cost AS DOUBLE) AS cost_usd, cost_is_lower_bound, is_lower_bound
FROM sums
ORDER BY total_tokens DESC NULLS LAST, variant;
