-- Tokens, cost and cache share by day
-- row: one day, UTC
-- from: token_usage_by_day
-- unknown: day NULL = no time known; a figure NULL = no record says it
-- not counted: runs with is_counted false; the tokens of side calls (their cost is counted)
-- by: day
-- params: since, until, wire, run
-- picture: column day total_tokens; column day cost_usd; line day cache_read_percent
--   cache_read_percent: of the whole input, what came out of the cache.
CREATE OR REPLACE VIEW report_tokens_by_day AS
SELECT
    day, runs, input_tokens, cache_read_tokens, cache_write_tokens, output_tokens, total_tokens,
    100 * CAST(cache_read_tokens AS DOUBLE) / CAST(nullif(input_tokens, 0) AS DOUBLE) AS cache_read_percent,
    cost_usd, cost_is_lower_bound, is_lower_bound
FROM token_usage_by_day
ORDER BY day NULLS LAST;
