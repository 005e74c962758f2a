-- Context size
-- row: one point at which the size of a run's context is known: a request, a gauge of the agent, or a compaction
-- from: usage_requests (input with cache of each request of the main chain), events with context_tokens, compactions
-- unknown: context_window_tokens NULL = the run does not say how large the window is
-- not counted: requests of subagents inside a run (parent_call_id), side calls, a run's repeated views of one record;
--   requests that the run copied from another: see the run that owns them
--   How full the context was, never usage. is_last: the last point of the run.
CREATE OR REPLACE VIEW context_size AS
WITH gauges AS (
    SELECT run_id, wire, ts, model, request_id, context_tokens, context_window_tokens, position
    FROM events
    WHERE context_tokens IS NOT NULL AND is_shadow IS NOT TRUE
    QUALIFY event_key IS NULL OR row_number() OVER (PARTITION BY run_id, event_key, part ORDER BY position) = 1
), windows AS (
    SELECT run_id, model, max(context_window_tokens) AS context_window_tokens
    FROM events
    WHERE context_window_tokens IS NOT NULL AND is_shadow IS NOT TRUE
    GROUP BY run_id, model
), points AS (
    SELECT
        r.run_id, r.wire, 'request' AS source, r.ts, r.model, r.request_id,
        r.input_tokens + coalesce(r.cache_read_tokens, 0) + coalesce(r.cache_write_tokens, 0) AS context_tokens,
        w.context_window_tokens, r.position
    FROM usage_requests AS r
    LEFT JOIN windows AS w ON w.run_id = r.run_id AND w.model = r.model
    WHERE r.usage_scope = 'snapshot' AND r.input_includes_cache IS FALSE AND r.parent_call_id IS NULL
        AND NOT r.is_side_call
    UNION ALL
    SELECT run_id, wire, 'gauge', ts, model, request_id, context_tokens, context_window_tokens, position FROM gauges
    UNION ALL
    SELECT run_id, wire, 'compaction', ts, NULL, NULL, tokens_after, NULL, position
    FROM compactions
    WHERE tokens_after IS NOT NULL
)
SELECT
    p.run_id, p.wire, p.source, p.ts, p.model, p.request_id, p.context_tokens, p.context_window_tokens,
    CAST(p.context_tokens AS DOUBLE) / CAST(nullif(p.context_window_tokens, 0) AS DOUBLE) * 100 AS used_percent,
    row_number() OVER (PARTITION BY p.run_id ORDER BY p.position DESC) = 1 AS is_last, l.is_counted, p.position
FROM points AS p JOIN run_links AS l ON l.run_id = p.run_id
WHERE p.context_tokens IS NOT NULL;
