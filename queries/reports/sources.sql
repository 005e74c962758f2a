-- Sources
-- row: one ingested file
-- from: sources
-- unknown: NULL = not measured
-- not counted: older revisions of a file
-- by: none
-- params: since, until, wire, run
-- picture: none
CREATE OR REPLACE VIEW report_sources AS
SELECT
    path, wire, shape, status, status_reason, size_bytes, lines, event_lines, refused_lines, blank_lines, pending_bytes,
    redactions, is_redacted, first_seen, last_seen
FROM sources
ORDER BY path;
