-- Usage to put a price on
-- row: one usage row (a request, or a total over several) of a run; one row of a run without usage
-- from: usage, run_states for what a sum can be grouped by
-- unknown: missing says what a price needs and the row lacks: usage, tokens, model (the first that holds; NULL = none);
--   price_ts NULL = no time is known of the row, nor of its run; uncached_input_tokens NULL = not known how much of
--   the input was read from a cache; cache_write_unknown_tokens = written, not known whether for 5 minutes or 1 hour
-- not counted: what usage does not count; a cost beside tokens of its run is no usage of its own (is_only_cost)
--   is_request: input_tokens is what one request sent, so a price that rises with it can be told (Harness Lab records a
--   Codex turn, not its requests). A row without a time takes the last one known of its run for price_ts, not for day.
--   Side calls are priced like the others: vendors charge for them.
CREATE OR REPLACE VIEW usage_to_price AS
WITH rows_of_runs AS (
    SELECT
        s.run_id, s.wire, s.adapter, s.task, s.variant, s.working_directory AS directory, s.is_counted, s.dated_at,
        u.usage_source, u.model, u.speed, u.ts, u.day, u.is_side_call, u.input_tokens, u.uncached_input_tokens,
        u.cache_read_tokens, u.cache_write_tokens, u.cache_write_5m_tokens, u.cache_write_1h_tokens, u.output_tokens,
        u.reasoning_tokens, u.cost_usd, u.is_lower_bound,
        count(u.run_id) FILTER (WHERE u.usage_source <> 'cost') OVER (PARTITION BY s.run_id) AS rows_with_tokens,
        bool_or(u.cost_usd IS NOT NULL) OVER (PARTITION BY s.run_id) AS run_has_cost
    FROM run_states AS s
    LEFT JOIN usage AS u ON u.run_id = s.run_id
)
SELECT
    run_id, wire, adapter, task, variant, directory, model, speed, day, coalesce(ts, dated_at) AS price_ts,
    usage_source, is_side_call,
    CASE
        WHEN usage_source IS NULL THEN 'usage'
        WHEN input_tokens IS NULL OR output_tokens IS NULL THEN 'tokens'
        WHEN model IS NULL THEN 'model'
    END AS missing,
    usage_source = 'cost' AND rows_with_tokens > 0 AS is_only_cost,
    usage_source = 'snapshot'
        OR (usage_source = 'delta' AND coalesce(wire <> 'harness-lab' OR adapter <> 'codex', false)) AS is_request,
    input_tokens, uncached_input_tokens, cache_read_tokens, cache_write_tokens, cache_write_5m_tokens,
    cache_write_1h_tokens,
    CASE WHEN cache_write_5m_tokens IS NULL THEN cache_write_tokens END AS cache_write_unknown_tokens,
    output_tokens, reasoning_tokens, cost_usd, run_has_cost IS TRUE AS run_has_cost, is_lower_bound, is_counted
FROM rows_of_runs;
