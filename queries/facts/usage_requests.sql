-- Requests by their own names
-- row: one model request that its wire names lake-wide (usage_key); for a run that is not counted, by itself
-- from: stored_events of scope snapshot or delta with a usage_key, or with totals of their runs; piece_links
-- unknown: NULL = the record did not say; is_final NULL = no row says whether its figures may still grow (a row that
--   is final but leaves its output out does not)
-- not counted: shadows; requests that a harness's run counts (run_links.is_replaced, names_requests)
--   The figures are those of the row with the largest output, wherever it stands (then of the oldest source, then the
--   later row). The run is the owner: of the runs that show the request the one
--   with a total that covers it, else the one whose source is the oldest. is_kept is false where such a total holds the
--   tokens. ts is the owner's first. Structs of numbers, NULL as -1: their largest (smallest) is the row that counts,
--   in one pass over the rows.
CREATE OR REPLACE VIEW usage_requests AS
WITH links AS (
    FROM piece_links
), last_totals AS (
    SELECT
        p.run_id, e.is_side_call IS TRUE AS is_side_call,
        max(p.piece * 1000000000000000 + e.line * 1000000 + e.part) AS position
    FROM stored_events AS e JOIN links AS p ON p.source_id = e.source_id AND p.wire_run_id = e.run_id
    WHERE e.usage_scope IN ('final', 'turn_total') AND e.is_shadow IS NOT TRUE
    GROUP BY p.run_id, e.is_side_call IS TRUE
), found AS (
    SELECT
        e.usage_key, p.run_id, e.source_id, e.line, e.part, e.wire, e.request_id, e.usage_scope, e.model, e.effort,
        e.speed, e.ts, e.input_tokens, e.cache_read_tokens, e.cache_write_tokens, e.cache_write_1h_tokens,
        e.output_tokens, e.reasoning_tokens, e.input_includes_cache, e.cost_usd, e.is_side_call IS TRUE AS is_side_call,
        e.usage_is_final, e.requests, e.parent_call_id, p.place, p.apart, p.is_replaced, p.is_selected,
        p.piece * 1000000000000000 + e.line * 1000000 + e.part AS position
    FROM stored_events AS e JOIN links AS p ON p.source_id = e.source_id AND p.wire_run_id = e.run_id
    WHERE e.usage_key IS NOT NULL AND e.usage_scope IN ('snapshot', 'delta') AND e.is_shadow IS NOT TRUE
), claimed AS (
    SELECT
        f.* EXCLUDE (apart), unnest(CASE WHEN f.is_replaced THEN [f.apart, NULL] ELSE [f.apart] END) AS apart,
        CASE WHEN t.position IS NULL THEN 1 WHEN f.position <= t.position THEN 0 ELSE 2 END AS claim
    FROM found AS f
    LEFT JOIN last_totals AS t ON t.run_id = f.run_id AND t.is_side_call = f.is_side_call
), grouped AS (
    SELECT
        usage_key, apart,
        max({
            'output_tokens': coalesce(output_tokens, -1), 'age': -place,
            'at': coalesce(ts, TIMESTAMPTZ '0001-01-01 00:00:00+00'), 'line': line, 'part': part,
            'input_tokens': coalesce(input_tokens, -1),
            'cache_read_tokens': coalesce(cache_read_tokens, -1),
            'cache_write_tokens': coalesce(cache_write_tokens, -1),
            'cache_write_1h_tokens': coalesce(cache_write_1h_tokens, -1),
            'reasoning_tokens': coalesce(reasoning_tokens, -1), 'cost_usd': coalesce(cost_usd, -1),
            'includes_cache': CASE WHEN input_includes_cache THEN 1 WHEN NOT input_includes_cache THEN 0 ELSE -1 END,
            'usage_scope': usage_scope, 'model': coalesce(model, ''), 'effort': coalesce(effort, ''),
            'speed': coalesce(speed, ''), 'request_id': coalesce(request_id, ''),
            'source_id': source_id
        }) AS fullest,
        min({
            'claim': CASE WHEN is_replaced AND apart IS NULL THEN -1 ELSE claim END, 'place': place,
            'at': coalesce(ts, TIMESTAMPTZ '9999-12-31 00:00:00+00'), 'position': position, 'run_id': run_id,
            'wire': wire, 'is_selected': is_selected
        }) AS owner,
        min(parent_call_id) AS parent_call_id, bool_or(is_side_call) AS is_side_call,
        CASE
            WHEN max(output_tokens) IS NULL THEN bool_or(usage_is_final)
            ELSE bool_or(usage_is_final AND output_tokens IS NOT NULL)
        END AS is_final, max(requests) AS requests
    FROM claimed
    GROUP BY usage_key, apart
), named AS (
    SELECT e.request_id
    FROM stored_events AS e
    JOIN links AS p ON p.source_id = e.source_id AND p.wire_run_id = e.run_id
    WHERE e.usage_scope IS NOT NULL AND e.usage_key IS NULL AND e.request_id IS NOT NULL AND e.is_shadow IS NOT TRUE
        AND p.names_requests AND p.is_counted
)
SELECT
    owner.run_id AS run_id, owner.wire AS wire, usage_key, fullest.source_id AS source_id, fullest.line AS line,
    fullest.part AS part, owner.position AS position, nullif(fullest.request_id, '') AS request_id,
    fullest.usage_scope AS usage_scope, nullif(fullest.model, '') AS model, nullif(fullest.effort, '') AS effort,
    nullif(fullest.speed, '') AS speed,
    CASE WHEN owner.at < TIMESTAMPTZ '9999-12-31 00:00:00+00' THEN owner.at END AS ts,
    nullif(fullest.input_tokens, -1) AS input_tokens, nullif(fullest.cache_read_tokens, -1) AS cache_read_tokens,
    nullif(fullest.cache_write_tokens, -1) AS cache_write_tokens,
    nullif(fullest.cache_write_1h_tokens, -1) AS cache_write_1h_tokens,
    nullif(fullest.output_tokens, -1) AS output_tokens, nullif(fullest.reasoning_tokens, -1) AS reasoning_tokens,
    CASE fullest.includes_cache WHEN 1 THEN true WHEN 0 THEN false END AS input_includes_cache,
    CASE WHEN fullest.cost_usd >= 0 THEN fullest.cost_usd END AS cost_usd,
    parent_call_id, is_side_call, is_final, requests, owner.claim = 1 AS is_kept
FROM grouped AS g
ANTI JOIN named AS n ON n.request_id = g.usage_key AND g.apart IS NULL
WHERE owner.claim >= 0 AND owner.is_selected;
