-- Refused lines by source
-- row: one source with refused lines
-- from: refusals, sources
-- unknown: first_line NULL = the whole file was refused
-- not counted: unterminated last lines: they are pending
-- by: reason, source, run
-- params: since, until, wire, run
-- picture: bar path refusals
CREATE OR REPLACE VIEW report_refusals_by_source AS
SELECT
    r.path, r.wire, count(*) AS refusals, count(DISTINCT r.reason) AS reasons, min(r.line) AS first_line,
    max(s.lines) AS lines, max(s.status) AS status
FROM refusals AS r LEFT JOIN sources AS s ON s.source_id = r.source_id
GROUP BY r.path, r.wire
ORDER BY refusals DESC, r.path;
