-- Subagents
-- row: one run of an agent that another run started
-- from: run_metrics and run_states of runs that name a parent
-- unknown: NULL = no record says it; share_percent NULL = some tokens of the family are not known
-- not counted: forks of a session or thread (they go on with its history, they are no agents); agents inside a capture
--   that have no run of their own
--   share_percent: the agent's tokens in those of its parent and of all agents that the same parent started.
CREATE OR REPLACE VIEW subagents AS
WITH children AS (
    SELECT
        s.run_id, s.parent_run_id, s.parent_call_id,
        coalesce((s.attributes->>'agent_nickname'), s.agent_id) AS agent, (s.attributes->>'agent_role') AS agent_role
    FROM run_states AS s
    WHERE s.parent_run_id IS NOT NULL AND (s.attributes->>'forked_from') IS NULL
), figures AS (
    SELECT
        run_id, wire, started_at, duration_ms, completeness, requests, requests_not_final, input_tokens,
        uncached_input_tokens, cache_read_tokens, cache_write_tokens, output_tokens, reasoning_tokens, total_tokens,
        tokens_are_lower_bound, cost_usd, tool_calls, denied_calls, working_directory, is_counted
    FROM run_metrics
), families AS (
    SELECT c.parent_run_id, sum(f.total_tokens) AS total_tokens
    FROM children AS c JOIN figures AS f ON f.run_id = c.run_id
    GROUP BY c.parent_run_id
)
SELECT
    c.parent_run_id, c.run_id, f.wire, c.agent, c.agent_role, c.parent_call_id, f.started_at, f.duration_ms,
    f.completeness, f.requests, f.requests_not_final, f.input_tokens, f.uncached_input_tokens, f.cache_read_tokens,
    f.cache_write_tokens, f.output_tokens, f.reasoning_tokens, f.total_tokens, f.tokens_are_lower_bound, f.cost_usd,
    f.tool_calls, f.denied_calls, p.total_tokens AS parent_total_tokens,
    p.tokens_are_lower_bound AS parent_tokens_are_lower_bound,
    CAST(f.total_tokens AS DOUBLE) / CAST(nullif(p.total_tokens + a.total_tokens, 0) AS DOUBLE) * 100 AS share_percent,
    f.working_directory, f.is_counted
FROM children AS c
JOIN figures AS f ON f.run_id = c.run_id
LEFT JOIN figures AS p ON p.run_id = c.parent_run_id
LEFT JOIN families AS a ON a.parent_run_id = c.parent_run_id;
