-- Usage as it is owned
-- row: one usage event that may count: a request of its owner, a total of a run or of a turn, or a cost without tokens
-- from: events that say how their figures add up (usage_scope), usage_requests
-- unknown: NULL = the record did not say; uncached_input_tokens and the cache columns NULL = the wire knows no cache
--   (uncached_input_tokens also where the cache columns say more than the input that should hold them);
--   cache_write_5m_tokens NULL = not known how long the cache keeps what was written
-- not counted: second copies of a record in a run (event_key), rows that a total of the run replaces, all but the
--   fullest of the rows of one request (the later of equal ones), all but the last running total, requests that another
--   run owns (usage_requests), shadows.
--   is_kept false: a request whose tokens a total holds; it counts as a request, not as usage. input_tokens is the
--   whole input: uncached + cache_read + cache_write. source_id, line and part are where the figures stand. A running
--   total of a series of runs (usage_key) counts less the last total of the run before it in the order of totals; where
--   a part would be negative, a new count began. is_part_unknown: input_tokens lacks a part that the record
--   did not say, though it says the other (a record that says neither is of a vendor without a cache).
CREATE OR REPLACE VIEW usage_owned AS
WITH observed AS (
    SELECT
        wire, run_id, source_id, line, part, position, request_id, usage_key, usage_scope, model, effort, speed, ts,
        input_tokens, cache_read_tokens, cache_write_tokens, cache_write_1h_tokens, output_tokens, reasoning_tokens,
        input_includes_cache, cost_usd, is_side_call IS TRUE AS is_side_call, usage_is_final AS is_final,
        event_key
    FROM events
    WHERE usage_scope IS NOT NULL AND is_shadow IS NOT TRUE
        AND (usage_key IS NULL OR usage_scope NOT IN ('snapshot', 'delta'))
), run_totals AS (
    SELECT
        run_id, is_side_call,
        max(position // 1000000) FILTER (WHERE usage_scope = 'final') AS final_line,
        max(position) FILTER (WHERE usage_scope = 'cumulative' AND usage_key IS NULL) AS last_running,
        bool_or(usage_scope IN ('final', 'turn_total')) AS is_total
    FROM observed
    WHERE usage_scope IN ('final', 'cumulative', 'turn_total')
    GROUP BY run_id, is_side_call
), placed AS (
    SELECT
        o.*, CASE o.usage_scope
            WHEN 'final' THEN o.position // 1000000 = t.final_line
            WHEN 'cumulative' THEN o.usage_key IS NULL AND NOT t.is_total AND o.position = t.last_running
            WHEN 'turn_total' THEN true
            WHEN 'cost' THEN true
            ELSE t.is_total IS NOT TRUE
        END AS may_count
    FROM observed AS o
    LEFT JOIN run_totals AS t ON t.run_id = o.run_id AND t.is_side_call = o.is_side_call
), totals_once AS (
    FROM placed WHERE may_count AND usage_scope <> 'snapshot' AND event_key IS NULL
    UNION ALL
    FROM (FROM placed WHERE may_count AND usage_scope <> 'snapshot' AND event_key IS NOT NULL)
    QUALIFY row_number() OVER (PARTITION BY run_id, event_key, part ORDER BY position) = 1
), last_of_series AS (
    FROM observed
    WHERE usage_scope = 'cumulative' AND usage_key IS NOT NULL
        AND (input_tokens IS NOT NULL OR output_tokens IS NOT NULL)
    QUALIFY row_number() OVER (PARTITION BY run_id, usage_key ORDER BY position DESC) = 1
), in_series AS (
    SELECT
        *,
        lag(input_tokens, 1) OVER series AS input_before, lag(cache_read_tokens, 1) OVER series AS read_before,
        lag(cache_write_tokens, 1) OVER series AS write_before,
        lag(cache_write_1h_tokens, 1) OVER series AS hour_before,
        lag(output_tokens, 1) OVER series AS output_before, lag(reasoning_tokens, 1) OVER series AS reasoning_before,
        row_number() OVER series AS place
    FROM last_of_series
    WINDOW series AS (
        PARTITION BY usage_key ORDER BY coalesce(input_tokens, 0) + coalesce(output_tokens, 0), run_id, position
    )
), counts AS (
    SELECT
        *,
        place = 1 OR coalesce(
            input_tokens < input_before OR cache_read_tokens < read_before OR cache_write_tokens < write_before
            OR cache_write_1h_tokens < hour_before OR output_tokens < output_before
            OR reasoning_tokens < reasoning_before, false
        ) AS is_new_count
    FROM in_series
), kept AS (
    SELECT
        wire, run_id, source_id, line, part, position, request_id, usage_scope, model, effort, speed, ts, input_tokens,
        cache_read_tokens, cache_write_tokens, cache_write_1h_tokens, output_tokens, reasoning_tokens,
        input_includes_cache, cost_usd, is_side_call, is_final, NULL AS requests, true AS is_kept
    FROM totals_once
    UNION ALL
    SELECT
        wire, run_id, source_id, line, part, position, request_id, usage_scope, model, effort, speed, ts, input_tokens,
        cache_read_tokens, cache_write_tokens, cache_write_1h_tokens, output_tokens, reasoning_tokens,
        input_includes_cache, cost_usd, is_side_call, is_final, NULL, true
    FROM (FROM placed WHERE may_count AND usage_scope = 'snapshot')
    QUALIFY row_number() OVER (
        PARTITION BY run_id, request_id, CASE WHEN request_id IS NULL THEN position END
        ORDER BY output_tokens DESC NULLS LAST, position DESC
    ) = 1
    UNION ALL
    SELECT
        wire, run_id, source_id, line, part, position, request_id, usage_scope, model, effort, speed, ts, input_tokens,
        cache_read_tokens, cache_write_tokens, cache_write_1h_tokens, output_tokens, reasoning_tokens,
        input_includes_cache, cost_usd, is_side_call, is_final, requests, is_kept
    FROM usage_requests
    UNION ALL
    SELECT
        wire, run_id, source_id, line, part, position, request_id, usage_scope, model, effort, speed, ts,
        CASE WHEN is_new_count THEN input_tokens ELSE input_tokens - input_before END,
        CASE WHEN is_new_count THEN cache_read_tokens ELSE cache_read_tokens - read_before END,
        CASE WHEN is_new_count THEN cache_write_tokens ELSE cache_write_tokens - write_before END,
        CASE WHEN is_new_count THEN cache_write_1h_tokens ELSE cache_write_1h_tokens - hour_before END,
        CASE WHEN is_new_count THEN output_tokens ELSE output_tokens - output_before END,
        CASE WHEN is_new_count THEN reasoning_tokens ELSE reasoning_tokens - reasoning_before END,
        input_includes_cache, cost_usd, is_side_call, is_final, NULL, true
    FROM counts
)
SELECT
    run_id, wire, source_id, line, part, position, request_id, usage_scope, model, effort, speed, ts, is_side_call,
    CASE
        WHEN input_includes_cache IS FALSE
            THEN input_tokens + coalesce(cache_read_tokens, 0) + coalesce(cache_write_tokens, 0)
        ELSE input_tokens
    END AS input_tokens,
    CASE
        WHEN input_includes_cache AND input_tokens >= cache_read_tokens + coalesce(cache_write_tokens, 0)
            THEN input_tokens - cache_read_tokens - coalesce(cache_write_tokens, 0)
        WHEN NOT input_includes_cache THEN input_tokens
    END AS uncached_input_tokens,
    cache_read_tokens, cache_write_tokens, cache_write_tokens - cache_write_1h_tokens AS cache_write_5m_tokens,
    cache_write_1h_tokens, output_tokens, reasoning_tokens, cost_usd, is_final, requests, is_kept,
    input_includes_cache IS FALSE AND (cache_read_tokens IS NULL) <> (cache_write_tokens IS NULL) AS is_part_unknown
FROM kept;
