-- The rows in the lake are those the ledger counted
-- row: one source whose event or refusal rows differ from the ledger's count; there must be none
-- from: sources, stored_events, stored_refusals
-- unknown: unknown sums are compared as unknown
-- not counted: nothing
CREATE OR REPLACE VIEW check_rows_of_sources AS
WITH event_rows AS (
    SELECT source_id, count(*) AS events, count(DISTINCT line) AS event_lines FROM stored_events GROUP BY source_id
), refusal_rows AS (
    SELECT source_id, count(*) AS refusals FROM stored_refusals GROUP BY source_id
)
SELECT
    coalesce(s.source_id, e.source_id, r.source_id) AS source_id, s.path, s.status, s.events AS ledger_events,
    e.events AS lake_events, s.event_lines AS ledger_event_lines, e.event_lines AS lake_event_lines,
    s.refusals AS ledger_refusals, r.refusals AS lake_refusals
FROM sources AS s
FULL JOIN event_rows AS e ON e.source_id = s.source_id
FULL JOIN refusal_rows AS r ON r.source_id = coalesce(s.source_id, e.source_id)
WHERE coalesce(s.events, 0) <> coalesce(e.events, 0) OR coalesce(s.event_lines, 0) <> coalesce(e.event_lines, 0)
    OR coalesce(s.refusals, 0) <> coalesce(r.refusals, 0);
