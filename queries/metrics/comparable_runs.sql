-- Comparable runs
-- row: one counted run that no other run started as its agent
-- from: run_metrics; runs for models, version and agents
-- unknown: NULL = the record does not say; such a run is left out of a comparison of that figure, never taken as 0
-- not counted: runs with is_counted false; agents that another run started (they are a part of that run's work)
--   model: the models of the run in order of their names, as one text. X_is_lower_bound: the true X may be higher; so
--   may tokens, cost and counts of a run that started agents with runs of their own. success_rate: 1 where the outcome
--   is the wire's word for success, 0 where it is a word for failure; completion_rate: 1 closed, 0 truncated or
--   inconsistent. tool_calls_unfinished only of closed runs: elsewhere calls may yet finish. duration_ms of a run whose
--   end was seen. What is compared is listed in `runlake compare --help`.
CREATE OR REPLACE VIEW comparable_runs AS
WITH named AS (
    SELECT
        run_id, array_to_string(models, ', ') AS model, agent_version, is_counted,
        parent_run_id IS NOT NULL AND (attributes->>'forked_from') IS NULL AS is_agent,
        CASE
            WHEN parent_run_id IS NOT NULL AND (attributes->>'forked_from') IS NULL THEN parent_run_id
            ELSE run_id
        END AS family
    FROM runs
), families AS (
    SELECT
        run_id, model, agent_version, is_agent,
        count(*) FILTER (WHERE is_agent AND is_counted) OVER (PARTITION BY family) AS agent_runs
    FROM named
), said AS (
    SELECT
        m.*, f.model, f.agent_version, f.agent_runs,
        m.completeness IN ('open', 'truncated', 'inconsistent') OR m.refused_lines > 0 OR f.agent_runs > 0 AS is_cut
    FROM run_metrics AS m JOIN families AS f ON f.run_id = m.run_id
    WHERE m.is_counted AND NOT f.is_agent
)
SELECT
    run_id, wire, adapter, task, variant, repetition, model, agent_version, working_directory, git_branch, started_at,
    completeness, outcome, agent_runs,
    CASE
        WHEN outcome IN ('pass', 'success', 'finished', 'completed') THEN CAST(1 AS DOUBLE)
        WHEN outcome IN ('fail', 'error', 'failed', 'canceled') THEN CAST(0 AS DOUBLE)
    END AS success_rate,
    CASE
        WHEN completeness = 'closed' THEN CAST(1 AS DOUBLE)
        WHEN completeness IN ('truncated', 'inconsistent') THEN CAST(0 AS DOUBLE)
    END AS completion_rate,
    cost_usd, duration_ms, total_tokens, input_tokens, uncached_input_tokens, cache_read_tokens, cache_write_tokens,
    output_tokens, reasoning_tokens, requests, tool_calls, failed_calls, denied_calls,
    CASE WHEN unfinished_is_exact THEN tool_calls_unfinished END AS tool_calls_unfinished,
    file_changes, retries, errors, compactions, rate_limit_rejections,
    cost_usd IS NOT NULL AND (is_cut OR tokens_are_lower_bound IS TRUE) AS cost_usd_is_lower_bound,
    tokens_are_lower_bound IS TRUE OR agent_runs > 0 AS tokens_are_lower_bound,
    denials_are_lower_bound IS TRUE OR agent_runs > 0 AS denials_are_lower_bound,
    is_cut AS counts_are_lower_bound
FROM said;
