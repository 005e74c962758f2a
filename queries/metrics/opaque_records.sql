-- Opaque records
-- row: one record of the agent that its harness, or its wire here, does not know
-- from: incidents of kind opaque, sources for the path
-- unknown: NULL = the harness did not say; a native wire has the type in event
-- not counted: nothing. A run with any of them has uncertain claims of absence
--   path and line cite our file; source_line and digest cite the file the harness read.
CREATE OR REPLACE VIEW opaque_records AS
SELECT
    e.run_id, e.wire, e.ts, e.status AS vendor_type, (e.attributes->>'vendor_subtype') AS vendor_subtype,
    (e.attributes->>'digest') AS digest, CAST(e.attributes->>'source_line' AS BIGINT) AS source_line, e.event, s.path,
    e.source_id, e.line, e.position
FROM incidents AS e LEFT JOIN sources AS s ON s.source_id = e.source_id
WHERE e.kind = 'opaque';
