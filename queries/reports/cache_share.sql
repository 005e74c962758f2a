-- Share of the input that came from the cache
-- row: one model
-- from: token_usage
-- unknown: model NULL = not named; cache_read_percent NULL = no record says what the cache gave
-- not counted: runs with is_counted false; side calls; in cache_read_percent rows that do not say what the cache gave
-- by: none
-- params: since, until, wire, run
-- picture: bar model cache_read_percent
CREATE OR REPLACE VIEW report_cache_share AS
WITH sums AS (
    SELECT
        model, count(DISTINCT run_id) AS runs,
        sum(input_tokens) AS input_tokens,
        sum(input_tokens) FILTER (WHERE cache_read_tokens IS NOT NULL) AS input_tokens_with_cache_known,
        sum(cache_read_tokens) AS cache_read_tokens, sum(cache_write_tokens) AS cache_write_tokens,
        bool_or(is_lower_bound) AS is_lower_bound
    FROM token_usage
    WHERE is_counted AND NOT is_side_call
    GROUP BY model
)
SELECT
    model, runs, CAST(input_tokens AS BIGINT) AS input_tokens,
    CAST(input_tokens_with_cache_known AS BIGINT) AS input_tokens_with_cache_known,
    CAST(cache_read_tokens AS BIGINT) AS cache_read_tokens, CAST(cache_write_tokens AS BIGINT) AS cache_write_tokens,
    100 * CAST(cache_read_tokens AS DOUBLE) / CAST(nullif(input_tokens_with_cache_known, 0) AS DOUBLE)
        AS cache_read_percent,
    is_lower_bound
FROM sums
ORDER BY input_tokens DESC NULLS LAST, model;
