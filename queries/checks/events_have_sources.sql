-- Every event and refusal belongs to a source
-- row: one source id that the ledger does not know; there must be none
-- from: stored_events, stored_refusals, sources
-- unknown: unknown sums are compared as unknown
-- not counted: nothing
CREATE OR REPLACE VIEW check_events_have_sources AS
WITH named AS (
    SELECT source_id FROM stored_events GROUP BY source_id
    UNION
    SELECT source_id FROM stored_refusals GROUP BY source_id
)
SELECT source_id
FROM named ANTI JOIN sources USING (source_id);
