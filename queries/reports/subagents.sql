-- Subagents
-- row: one run of an agent that another run started
-- from: subagents
-- unknown: NULL = no record says it
-- not counted: forks; runs with is_counted false
-- by: none
-- params: since, until, wire, run
-- picture: bar agent total_tokens
CREATE OR REPLACE VIEW report_subagents AS
SELECT
    parent_run_id, agent, agent_role, run_id, started_at, requests, input_tokens, cache_read_tokens, cache_write_tokens,
    output_tokens, total_tokens, tokens_are_lower_bound, cost_usd, tool_calls, parent_total_tokens,
    parent_tokens_are_lower_bound, share_percent
FROM subagents
WHERE is_counted
ORDER BY total_tokens DESC NULLS LAST, run_id;
