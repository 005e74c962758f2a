-- The parts of the input add up
-- row: one usage row whose uncached and cached input differ from its input; there must be none
-- from: usage
-- unknown: unknown sums are compared as unknown
-- not counted: nothing
CREATE OR REPLACE VIEW check_input_parts AS
SELECT run_id, source_id, line, part, input_tokens, uncached_input_tokens, cache_read_tokens, cache_write_tokens
FROM usage
WHERE input_tokens <> uncached_input_tokens + coalesce(cache_read_tokens, 0) + coalesce(cache_write_tokens, 0)
    OR uncached_input_tokens < 0 OR cache_write_1h_tokens > cache_write_tokens;
