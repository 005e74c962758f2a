-- Share of the input that came from the cache
-- row: one model
-- from: token_usage
-- unknown: model NULL = not named; cache_read_percent NULL = no record says what part of its input the cache gave
-- not counted: runs with is_counted false; side calls; in cache_read_percent rows that do not say what part of their
--   input the cache gave
-- by: none
-- params: since, until, wire, run
-- picture: bar model cache_read_percent
CREATE OR REPLACE VIEW report_cache_share AS
WITH rows_of_models AS (
    -- figures of a cache beside an input of which nobody says whether it holds them are no part of it
    SELECT
        run_id, model, input_tokens, cache_read_tokens, cache_write_tokens, is_lower_bound,
        cache_read_tokens IS NOT NULL AND uncached_input_tokens IS NOT NULL AS is_split
    FROM token_usage
    WHERE is_counted AND NOT is_side_call
), sums AS (
    SELECT
        model, count(DISTINCT run_id) AS runs,
        sum(input_tokens) AS input_tokens,
        sum(input_tokens) FILTER (WHERE is_split) AS input_tokens_with_cache_known,
        sum(cache_read_tokens) FILTER (WHERE is_split) AS cache_read_of_known,
        sum(cache_read_tokens) AS cache_read_tokens, sum(cache_write_tokens) AS cache_write_tokens,
        bool_or(is_lower_bound) AS is_lower_bound
    FROM rows_of_models
    GROUP BY model
)
SELECT
    model, runs, CAST(input_tokens AS BIGINT) AS input_tokens,
    CAST(input_tokens_with_cache_known AS BIGINT) AS input_tokens_with_cache_known,
    CAST(cache_read_tokens AS BIGINT) AS cache_read_tokens, CAST(cache_write_tokens AS BIGINT) AS cache_write_tokens,
    100 * CAST(cache_read_of_known AS DOUBLE) / CAST(nullif(input_tokens_with_cache_known, 0) AS DOUBLE)
        AS cache_read_percent,
    is_lower_bound
FROM sums
ORDER BY input_tokens DESC NULLS LAST, model;
