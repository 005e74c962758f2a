-- Tokens, cost and cache share by day
-- row: one day, UTC
-- from: token_usage_by_day, token_usage
-- unknown: day NULL = no time known; a figure NULL = no record says it
-- not counted: runs with is_counted false; the tokens of side calls (their cost is counted); in cache_read_percent rows
--   that do not say what part of their input the cache gave
-- by: day
-- params: since, until, wire, run
-- picture: column day total_tokens; column day cost_usd; line day cache_read_percent
--   cache_read_percent: of the input of which that is known, what came out of the cache.
CREATE OR REPLACE VIEW report_tokens_by_day AS
WITH shares AS (
    SELECT
        day,
        100 * CAST(sum(cache_read_tokens) AS DOUBLE) / CAST(nullif(sum(input_tokens), 0) AS DOUBLE)
            AS cache_read_percent
    FROM token_usage
    WHERE is_counted AND NOT is_side_call AND cache_read_tokens IS NOT NULL AND uncached_input_tokens IS NOT NULL
    GROUP BY day
)
SELECT
    d.day, d.runs, d.input_tokens, d.cache_read_tokens, d.cache_write_tokens, d.output_tokens, d.total_tokens,
    s.cache_read_percent, d.cost_usd, d.cost_is_lower_bound, d.is_lower_bound
FROM token_usage_by_day AS d
LEFT JOIN shares AS s ON d.day IS NOT DISTINCT FROM s.day
ORDER BY d.day NULLS LAST;
