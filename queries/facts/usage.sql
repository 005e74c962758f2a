-- Token usage
-- row: one model request; or a run or turn where only its total is known; or a cost without tokens (usage_source cost)
-- from: usage_kept, run_states for exactness
-- unknown: NULL = the record did not say; uncached_input_tokens and the cache columns NULL = the wire knows no cache
-- not counted: what usage_kept leaves out: usage_observations shows each row and why
--   input_tokens is the whole input: uncached + cache_read + cache_write. output_tokens contains reasoning_tokens.
--   is_side_call rows (a helper model) stand beside the run's tokens, not in them; their cost is part of the run's.
--   is_lower_bound: the run's total, of which the row is a part, may be higher. ts of a total: its own, else the
--   last time known of its run, or of the run that shows the same work.
CREATE OR REPLACE VIEW usage AS
WITH gaps AS (
    SELECT run_id
    FROM usage_kept
    WHERE NOT is_side_call AND usage_scope <> 'cost'
    GROUP BY run_id
    HAVING bool_or(is_part_unknown)
        OR count(input_tokens) < count(*) OR count(output_tokens) < count(*)
        OR count(cache_read_tokens) BETWEEN 1 AND count(*) - 1
        OR count(cache_write_tokens) BETWEEN 1 AND count(*) - 1
        OR count(cache_write_1h_tokens) BETWEEN 1 AND count(*) - 1
        OR count(reasoning_tokens) BETWEEN 1 AND count(*) - 1
        OR count(uncached_input_tokens) BETWEEN 1 AND count(*) - 1
), placed AS (
    SELECT
        k.* EXCLUDE (ts),
        CASE
            WHEN k.ts IS NOT NULL THEN k.ts
            WHEN k.usage_scope IN ('final', 'cumulative', 'turn_total', 'cost') THEN s.dated_at
        END AS ts,
        CASE
            WHEN k.usage_scope = 'cost' THEN NULL
            WHEN g.run_id IS NOT NULL THEN true
            WHEN k.usage_scope = 'final' THEN false
            WHEN k.is_final IS NULL AND k.usage_scope = 'delta' THEN NOT s.is_whole
            WHEN k.is_final IS NULL THEN true
            WHEN k.usage_scope IN ('turn_total', 'cumulative')
                THEN NOT k.is_final OR s.completeness IN ('open', 'truncated')
            ELSE NOT k.is_final OR s.damaged_lines > 0 OR s.completeness = 'truncated'
        END AS is_lower_bound,
        s.is_counted
    FROM usage_kept AS k
    JOIN run_states AS s ON s.run_id = k.run_id
    LEFT JOIN gaps AS g ON g.run_id = k.run_id
)
SELECT
    run_id, wire, request_id, model, effort, speed, ts, CAST(date_trunc('day', ts) AS DATE) AS day,
    usage_scope AS usage_source, is_side_call, input_tokens, uncached_input_tokens, cache_read_tokens,
    cache_write_tokens, cache_write_5m_tokens, cache_write_1h_tokens, output_tokens, reasoning_tokens,
    input_tokens + output_tokens AS total_tokens, cost_usd, is_final, is_lower_bound, is_counted, source_id, line, part,
    position
FROM placed;
