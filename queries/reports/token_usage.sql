-- Token usage
-- row: one model; a helper model (side call) stands beside the others, not in their sum
-- from: token_usage_by_model
-- unknown: model NULL = not named; a figure NULL = no record says it
-- not counted: runs with is_counted false
-- by: run, model, day, wire, variant, task, directory
-- params: since, until, wire, run
-- picture: bar model total_tokens
CREATE OR REPLACE VIEW report_token_usage AS
SELECT
    model, is_side_call, runs, input_tokens, uncached_input_tokens, cache_read_tokens, cache_write_tokens,
    output_tokens, reasoning_tokens,
    total_tokens, cost_usd, cost_is_lower_bound, is_lower_bound
FROM token_usage_by_model
ORDER BY is_side_call, total_tokens DESC NULLS LAST, model;
