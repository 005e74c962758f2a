-- Context budget
-- row: one context that was built, or one compaction of it
-- from: events of kinds context and compaction
-- unknown: NULL = the record did not say (a compaction has no lanes, a built context no before and after)
-- not counted: nothing. Token figures are the harness's estimates, never usage
CREATE OR REPLACE VIEW context_budget AS
WITH built AS (
    SELECT
        run_id, wire, ts, turn_id, kind, reason, source_id, line, position,
        (attributes->>'estimated_tokens') IS NOT NULL AS has_lanes,
        CAST(attributes->>'token_budget' AS BIGINT) AS token_budget,
        CAST(attributes->>'fragments' AS BIGINT) AS fragments,
        CAST(attributes->>'$.estimated_tokens.system_contract' AS BIGINT) AS system_contract,
        CAST(attributes->>'$.estimated_tokens.current_task' AS BIGINT) AS current_task,
        CAST(attributes->>'$.estimated_tokens.tool_schemas' AS BIGINT) AS tool_schemas,
        CAST(attributes->>'$.estimated_tokens.recent_turns' AS BIGINT) AS recent_turns,
        CAST(attributes->>'$.estimated_tokens.retrieved_context' AS BIGINT) AS retrieved_context,
        CAST(attributes->>'$.estimated_tokens.artifact_summary' AS BIGINT) AS artifact_summary,
        CAST(attributes->>'$.estimated_tokens.policy' AS BIGINT) AS policy,
        CAST(
            coalesce((attributes->>'estimated_tokens_before'), (attributes->>'pre_tokens')) AS BIGINT
        ) AS tokens_before,
        CAST(
            coalesce((attributes->>'estimated_tokens_after'), (attributes->>'post_tokens')) AS BIGINT
        ) AS tokens_after,
        CAST(attributes->>'dropped_turn_start' AS BIGINT) AS dropped_turn_start,
        CAST(attributes->>'dropped_turn_end_exclusive' AS BIGINT) AS dropped_turn_end_exclusive
    FROM events
    WHERE kind IN ('context', 'compaction') AND is_shadow IS NOT TRUE
)
SELECT
    run_id, wire, ts, turn_id, kind, token_budget,
    CASE WHEN has_lanes THEN
        coalesce(system_contract, 0) + coalesce(current_task, 0) + coalesce(tool_schemas, 0) + coalesce(recent_turns, 0)
        + coalesce(retrieved_context, 0) + coalesce(artifact_summary, 0) + coalesce(policy, 0)
    END AS estimated_tokens,
    system_contract, current_task, tool_schemas, recent_turns, retrieved_context, artifact_summary, policy, fragments,
    tokens_before, tokens_after, dropped_turn_start, dropped_turn_end_exclusive, reason, source_id, line, position
FROM built;
