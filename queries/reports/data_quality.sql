-- Data quality
-- row: one thing that is unknown, a lower bound or left out, and how much of the lake it touches
-- from: run_metrics, sources
-- unknown: none: this is where unknown is counted
-- not counted: runs with is_counted false, but where they are what is counted. One run may stand in several rows
-- by: none
-- params: since, until, wire, run
-- picture: bar topic share
CREATE OR REPLACE VIEW report_data_quality AS
WITH topics AS (
    SELECT * FROM (VALUES
        (1, 'no end yet, the run may go on', 'runs'), (2, 'cut: the stream breaks off', 'runs'),
        (3, 'the end contradicts the lines', 'runs'), (4, 'the wire writes no end', 'runs'),
        (5, 'no time on record', 'runs'), (6, 'tokens unknown', 'runs'), (7, 'tokens are a lower bound', 'runs'),
        (8, 'vendor cost unknown', 'runs'), (9, 'denied calls unknown', 'runs'),
        (10, 'denied calls are a lower bound', 'runs'), (11, 'unfinished calls unknown', 'runs'),
        (12, 'calls may yet finish', 'runs'), (13, 'shown by another run too, left out of totals', 'runs'),
        (14, 'refused', 'lines'), (15, 'refused whole', 'files'), (16, 'skipped', 'files'),
        (17, 'unterminated last line, not yet read', 'files')
    ) AS t(place, topic, unit)
), in_runs AS (
    SELECT
        count(*) AS all_runs, count(*) FILTER (WHERE is_counted) AS counted_runs,
        count(*) FILTER (WHERE is_counted AND completeness = 'open') AS open_runs,
        count(*) FILTER (WHERE is_counted AND completeness = 'truncated') AS truncated_runs,
        count(*) FILTER (WHERE is_counted AND completeness = 'inconsistent') AS inconsistent_runs,
        count(*) FILTER (WHERE is_counted AND completeness = 'undecidable') AS undecidable_runs,
        count(*) FILTER (WHERE is_counted AND started_at IS NULL) AS timeless,
        count(*) FILTER (WHERE is_counted AND total_tokens IS NULL) AS without_tokens,
        count(*) FILTER (WHERE is_counted AND tokens_are_lower_bound AND total_tokens IS NOT NULL) AS tokens_bound,
        count(*) FILTER (WHERE is_counted AND cost_usd IS NULL) AS without_cost,
        count(*) FILTER (WHERE is_counted AND denied_calls IS NULL) AS without_decisions,
        count(*) FILTER (WHERE is_counted AND denials_are_lower_bound AND denied_calls IS NOT NULL) AS denials_bound,
        count(*) FILTER (WHERE is_counted AND tool_calls_unfinished IS NULL) AS without_results,
        count(*) FILTER (WHERE is_counted AND NOT unfinished_is_exact) AS unfinished_inexact
    FROM run_metrics
), in_sources AS (
    SELECT
        count(*) FILTER (WHERE status <> 'copy') AS files, count(*) FILTER (WHERE status = 'refused') AS refused_files,
        count(*) FILTER (WHERE status = 'skipped') AS skipped_files,
        count(*) FILTER (WHERE pending_bytes > 0) AS pending_files,
        sum(lines) AS all_lines, sum(refused_lines) AS refused_lines
    FROM sources
), judged AS (
    SELECT
        t.place, t.topic, t.unit,
        CASE t.place
            WHEN 1 THEN r.open_runs WHEN 2 THEN r.truncated_runs WHEN 3 THEN r.inconsistent_runs
            WHEN 4 THEN r.undecidable_runs WHEN 5 THEN r.timeless WHEN 6 THEN r.without_tokens
            WHEN 7 THEN r.tokens_bound WHEN 8 THEN r.without_cost WHEN 9 THEN r.without_decisions
            WHEN 10 THEN r.denials_bound WHEN 11 THEN r.without_results WHEN 12 THEN r.unfinished_inexact
            WHEN 13 THEN r.all_runs - r.counted_runs WHEN 14 THEN s.refused_lines WHEN 15 THEN s.refused_files
            WHEN 16 THEN s.skipped_files WHEN 17 THEN s.pending_files
        END AS touched,
        CASE
            WHEN t.place <= 12 THEN r.counted_runs WHEN t.place = 13 THEN r.all_runs
            WHEN t.place = 14 THEN s.all_lines ELSE s.files
        END AS of_all
    FROM topics AS t CROSS JOIN in_runs AS r CROSS JOIN in_sources AS s
)
SELECT
    topic, unit, CAST(touched AS BIGINT) AS touched, CAST(of_all AS BIGINT) AS of_all,
    CAST(touched AS DOUBLE) / CAST(of_all AS DOUBLE) AS share
FROM judged
WHERE of_all > 0
ORDER BY place;
