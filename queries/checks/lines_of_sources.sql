-- Every line of a source is an event, a refusal, blank or pending
-- row: one source whose lines are not all accounted for; there must be none
-- from: sources
-- unknown: unknown sums are compared as unknown
-- not counted: skipped sources and copies
CREATE OR REPLACE VIEW check_lines_of_sources AS
SELECT source_id, path, lines, event_lines, refused_lines, blank_lines, pending_bytes
FROM sources
WHERE status NOT IN ('skipped', 'copy')
    AND lines <> event_lines + refused_lines + blank_lines + CASE WHEN pending_bytes > 0 THEN 1 ELSE 0 END;
