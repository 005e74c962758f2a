-- Refusals by reason
-- row: wire × reason
-- from: refusals
-- unknown: first_line NULL = whole files were refused
-- not counted: unterminated last lines: they are pending, see sources
CREATE OR REPLACE VIEW refusals_by_reason AS
WITH ordered AS (
    SELECT
        wire, reason, source_id, path, line, bytes, run_id, detail,
        row_number() OVER (PARTITION BY wire, reason ORDER BY path, line, part, source_id) AS place
    FROM refusals
), sums AS (
    SELECT
        wire, reason, count(*) AS refusals, count(DISTINCT source_id) AS sources, count(DISTINCT run_id) AS runs,
        sum(bytes) AS bytes, min(path) FILTER (WHERE place = 1) AS first_path,
        min(line) FILTER (WHERE place = 1) AS first_line, min(detail) FILTER (WHERE place = 1) AS first_detail
    FROM ordered
    GROUP BY wire, reason
)
SELECT wire, reason, refusals, sources, runs, CAST(bytes AS BIGINT) AS bytes, first_path, first_line, first_detail
FROM sums;
