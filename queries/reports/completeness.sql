-- Completeness of runs
-- row: wire × completeness
-- from: run_metrics
-- unknown: undecidable = the wire, or this version of it, writes no end
-- not counted: runs with is_counted false
-- by: none
-- params: since, until, wire, run
-- picture: bar wire runs completeness
CREATE OR REPLACE VIEW report_completeness AS
SELECT
    wire, completeness, count(*) AS runs, CAST(sum(events) AS BIGINT) AS events,
    CAST(sum(refused_lines) AS BIGINT) AS refused_lines, min(completeness_reason) AS example
FROM run_metrics
WHERE is_counted
GROUP BY wire, completeness
ORDER BY wire, runs DESC, completeness;
