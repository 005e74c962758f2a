-- Compactions
-- row: one compaction of a context
-- from: incidents of kind compaction
-- unknown: NULL = the record did not say
-- not counted: shadows (Codex writes a second record of it), copies
--   Tokens are the size of the context before and after, never usage; a harness's are its estimates.
CREATE OR REPLACE VIEW compactions AS
WITH told AS (
    SELECT
        run_id, wire, ts, reason, duration_ms, turn_id, source_id, line, position, (attributes->>'trigger') AS trigger,
        coalesce((attributes->>'pre_tokens'), (attributes->>'estimated_tokens_before')) AS tokens_before,
        coalesce((attributes->>'post_tokens'), (attributes->>'estimated_tokens_after')) AS tokens_after
    FROM incidents
    WHERE kind = 'compaction'
)
SELECT
    c.run_id, c.wire, c.ts, coalesce(c.trigger, c.reason) AS trigger, CAST(c.tokens_before AS BIGINT) AS tokens_before,
    CAST(c.tokens_after AS BIGINT) AS tokens_after,
    CAST(c.tokens_before AS BIGINT) - CAST(c.tokens_after AS BIGINT) AS tokens_cut, c.duration_ms, c.turn_id,
    l.is_counted, c.source_id, c.line, c.position
FROM told AS c JOIN run_links AS l ON l.run_id = c.run_id;
