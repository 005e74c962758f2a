-- Token usage by day
-- row: one day, UTC
-- from: token_usage_by_day
-- unknown: day NULL = no time known; a figure NULL = no record says it
-- not counted: runs with is_counted false, tokens of side calls
-- by: run, model, day, wire, variant, task, directory
-- params: since, until, wire, run
-- picture: column day total_tokens
CREATE OR REPLACE VIEW report_token_usage_by_day AS
SELECT
    day, runs, input_tokens, uncached_input_tokens, cache_read_tokens, cache_write_tokens, output_tokens,
    reasoning_tokens,
    total_tokens, cost_usd, cost_is_lower_bound, is_lower_bound
FROM token_usage_by_day
ORDER BY day NULLS LAST;
