-- Usage that counts
-- row: one usage event that counts: a request, a run's total, or a cost without tokens
-- from: events that say how their figures add up (usage_scope)
-- unknown: NULL = the record did not say; uncached_input_tokens and the cache columns NULL = the wire knows no cache
-- not counted: rows that a total of the run replaces, all but the fullest of the rows of one request (the later of
--   equal ones), all but the last running total, usage that another run already shows (usage_key), shadows.
--   input_tokens is the whole input: uncached + cache_read + cache_write. This is the part of usage that needs
--   nothing but events; usage adds what depends on the run.
CREATE OR REPLACE VIEW usage_kept AS
WITH run_totals AS (
    SELECT
        run_id, is_side_call IS TRUE AS is_side_call,
        max(position // 1000000) FILTER (WHERE usage_scope = 'final') AS final_line,
        max(position) FILTER (WHERE usage_scope = 'cumulative') AS last_running
    FROM events
    WHERE usage_scope IN ('final', 'cumulative') AND is_shadow IS NOT TRUE
    GROUP BY run_id, is_side_call IS TRUE
), totals AS (
    SELECT
        e.wire, e.run_id, e.source_id, e.line, e.part, e.position, e.request_id, e.usage_key, e.usage_scope, e.model,
        e.ts, e.input_tokens, e.cache_read_tokens, e.cache_write_tokens, e.cache_write_1h_tokens, e.output_tokens,
        e.reasoning_tokens, e.input_includes_cache, e.cost_usd, e.is_side_call IS TRUE AS is_side_call
    FROM events AS e
    LEFT JOIN run_totals AS t ON t.run_id = e.run_id AND t.is_side_call = (e.is_side_call IS TRUE)
    WHERE e.usage_scope IN ('final', 'cumulative', 'cost') AND e.is_shadow IS NOT TRUE AND CASE e.usage_scope
        WHEN 'final' THEN e.position // 1000000 = t.final_line
        WHEN 'cumulative' THEN t.final_line IS NULL AND e.position = t.last_running
        ELSE true
    END
), live AS (
    SELECT
        e.wire, e.run_id, e.source_id, e.line, e.part, e.position, e.request_id, e.usage_key, e.usage_scope, e.model,
        e.ts, e.input_tokens, e.cache_read_tokens, e.cache_write_tokens, e.cache_write_1h_tokens, e.output_tokens,
        e.reasoning_tokens, e.input_includes_cache, e.cost_usd, e.is_side_call IS TRUE AS is_side_call
    FROM events AS e
    ANTI JOIN (SELECT run_id, is_side_call FROM run_totals WHERE final_line IS NOT NULL) AS t
        ON t.run_id = e.run_id AND t.is_side_call = (e.is_side_call IS TRUE)
    WHERE e.usage_scope IN ('delta', 'snapshot') AND e.is_shadow IS NOT TRUE
), fullest AS (
    FROM (FROM live WHERE usage_scope = 'snapshot' OR usage_key IS NOT NULL)
    QUALIFY row_number() OVER (
        PARTITION BY
            run_id, usage_key, CASE WHEN usage_key IS NULL THEN request_id END,
            CASE WHEN usage_key IS NULL AND request_id IS NULL THEN position END
        ORDER BY output_tokens DESC NULLS LAST, position DESC
    ) = 1
), kept AS (
    FROM totals WHERE usage_key IS NULL
    UNION ALL
    FROM live WHERE usage_scope = 'delta' AND usage_key IS NULL
    UNION ALL
    FROM fullest WHERE usage_key IS NULL
    UNION ALL
    FROM (FROM fullest WHERE usage_key IS NOT NULL UNION ALL FROM totals WHERE usage_key IS NOT NULL)
    QUALIFY row_number() OVER (
        PARTITION BY usage_key ORDER BY output_tokens DESC NULLS LAST, ts NULLS LAST, run_id, position
    ) = 1
)
SELECT
    run_id, wire, source_id, line, part, position, request_id, usage_scope, model, ts, is_side_call,
    CASE
        WHEN input_includes_cache IS FALSE
            THEN input_tokens + coalesce(cache_read_tokens, 0) + coalesce(cache_write_tokens, 0)
        ELSE input_tokens
    END AS input_tokens,
    CASE
        WHEN input_includes_cache THEN input_tokens - cache_read_tokens - coalesce(cache_write_tokens, 0)
        WHEN NOT input_includes_cache THEN input_tokens
    END AS uncached_input_tokens,
    cache_read_tokens, cache_write_tokens, cache_write_1h_tokens, output_tokens, reasoning_tokens, cost_usd
FROM kept;
