-- Usage that counts
-- row: one usage event that counts: a request, a total of a run or of a turn, or a cost without tokens
-- from: usage_owned
-- unknown: NULL = the record did not say; uncached_input_tokens and the cache columns NULL = the wire knows no cache
-- not counted: what usage_owned leaves out, and requests whose tokens a total holds
--   This is the part of usage that needs nothing but events; usage adds what depends on the run.
CREATE OR REPLACE VIEW usage_kept AS
SELECT
    run_id, wire, source_id, line, part, position, request_id, usage_scope, model, effort, speed, ts, is_side_call,
    input_tokens, uncached_input_tokens, cache_read_tokens, cache_write_tokens, cache_write_5m_tokens,
    cache_write_1h_tokens, output_tokens, reasoning_tokens, cost_usd, is_final, is_part_unknown
FROM usage_owned
WHERE is_kept;
