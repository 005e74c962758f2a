-- Usage as observed
-- row: one event that holds usage figures, or says that it is usage
-- from: events, beside what usage_kept has of them
-- unknown: NULL = the record did not say; usage_scope NULL = not known how the figures add up
-- not counted: nothing; is_kept says what usage counts, and why says the reason
CREATE OR REPLACE VIEW usage_observations AS
WITH seen AS (
    SELECT
        wire, run_id, source_id, line, part, position, ts, event, kind, request_id, usage_key, model, usage_scope,
        is_side_call, is_shadow, input_tokens, cache_read_tokens, cache_write_tokens, cache_write_1h_tokens,
        output_tokens, reasoning_tokens, input_includes_cache, cost_usd, requests
    FROM events
    WHERE usage_scope IS NOT NULL OR input_tokens IS NOT NULL OR output_tokens IS NOT NULL
        OR cache_read_tokens IS NOT NULL OR cache_write_tokens IS NOT NULL OR reasoning_tokens IS NOT NULL
        OR cost_usd IS NOT NULL
), totals AS (
    SELECT run_id, is_side_call IS TRUE AS is_side_call
    FROM seen
    WHERE usage_scope IN ('final', 'turn_total') AND is_shadow IS NOT TRUE
    GROUP BY run_id, is_side_call IS TRUE
), marked AS (
    SELECT seen.*, u.run_id IS NOT NULL AS is_kept, t.run_id IS NOT NULL AS has_total
    FROM seen
    LEFT JOIN usage_kept AS u ON u.source_id = seen.source_id AND u.line = seen.line AND u.part = seen.part
    LEFT JOIN totals AS t ON t.run_id = seen.run_id AND t.is_side_call = (seen.is_side_call IS TRUE)
)
SELECT
    run_id, wire, source_id, line, part, ts, event, kind, request_id, requests, usage_key, model, usage_scope,
    is_side_call, input_tokens, cache_read_tokens, cache_write_tokens, cache_write_1h_tokens, output_tokens,
    reasoning_tokens, input_includes_cache, cost_usd, is_kept,
    CASE
        WHEN is_kept AND usage_scope = 'final' THEN 'total of the run'
        WHEN is_kept AND usage_scope = 'turn_total' THEN 'total of the turn'
        WHEN is_kept AND usage_scope = 'cumulative' AND usage_key IS NOT NULL
            THEN 'last running total, less that of the run before it'
        WHEN is_kept AND usage_scope = 'cumulative' THEN 'last running total'
        WHEN is_kept AND usage_scope = 'snapshot' THEN 'largest of the request'
        WHEN is_kept AND usage_scope = 'cost' THEN 'cost without tokens'
        WHEN is_kept THEN 'adds up'
        WHEN is_shadow THEN 'shadow of another record'
        WHEN usage_scope IS NULL THEN 'not known how it adds up'
        WHEN usage_scope = 'final' THEN 'earlier total of the run'
        WHEN has_total THEN 'replaced by the total of the run'
        WHEN usage_scope = 'cumulative' THEN 'earlier running total'
        WHEN usage_key IS NOT NULL THEN 'another row of the request counts, here or in another run'
        ELSE 'another row of the request counts'
    END AS why,
    position
FROM marked;
