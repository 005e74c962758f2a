-- Token usage by run
-- row: one run
-- from: run_metrics
-- unknown: a figure NULL = no record says it
-- not counted: tokens of side calls (their cost is counted); is_counted false = another run shows the same work
-- by: run, model, day, wire, variant, task, directory
-- params: since, until, wire, run
-- picture: bar run_id total_tokens
CREATE OR REPLACE VIEW report_token_usage_by_run AS
SELECT
    run_id, wire, adapter, completeness, input_tokens, uncached_input_tokens, cache_read_tokens, cache_write_tokens,
    output_tokens, reasoning_tokens, total_tokens, cost_usd, tokens_are_lower_bound AS is_lower_bound, requests,
    is_counted
FROM run_metrics
ORDER BY total_tokens DESC NULLS LAST, run_id;
