-- Data quality
-- row: one thing that is unknown, a lower bound or left out, and how much of the lake it touches
-- from: run_metrics, sources
-- unknown: share NULL = there is nothing it could touch
-- not counted: runs with is_counted false, but where they are what is counted. One run may stand in several rows
-- by: none
-- params: since, until, wire, run
-- picture: bar topic share
CREATE OR REPLACE VIEW report_data_quality AS
WITH counted AS (
    SELECT
        count(*) AS runs,
        count(*) FILTER (WHERE completeness = 'open') AS is_open,
        count(*) FILTER (WHERE completeness = 'truncated') AS truncated,
        count(*) FILTER (WHERE completeness = 'inconsistent') AS inconsistent,
        count(*) FILTER (WHERE completeness = 'undecidable') AS undecidable,
        count(*) FILTER (WHERE started_at IS NULL) AS timeless,
        count(*) FILTER (WHERE total_tokens IS NULL) AS without_tokens,
        count(*) FILTER (WHERE tokens_are_lower_bound AND total_tokens IS NOT NULL) AS tokens_bound,
        count(*) FILTER (WHERE cost_usd IS NULL) AS without_cost,
        count(*) FILTER (WHERE denied_calls IS NULL) AS without_decisions,
        count(*) FILTER (WHERE denials_are_lower_bound AND denied_calls IS NOT NULL) AS denials_bound,
        count(*) FILTER (WHERE tool_calls_unfinished IS NULL) AS without_results,
        count(*) FILTER (WHERE NOT unfinished_is_exact) AS unfinished_inexact
    FROM run_metrics
    WHERE is_counted
), twice AS (
    SELECT count(*) AS runs, count(*) FILTER (WHERE NOT is_counted) AS shown_twice FROM run_metrics
), read_lines AS (
    SELECT
        count(*) FILTER (WHERE status <> 'copy') AS files, count(*) FILTER (WHERE status = 'refused') AS refused,
        count(*) FILTER (WHERE status = 'skipped') AS skipped, count(*) FILTER (WHERE pending_bytes > 0) AS pending,
        sum(lines) AS all_lines, sum(refused_lines) AS refused_lines
    FROM sources
), listed AS (
    SELECT * FROM (
        SELECT 1 AS place, 'no end yet, the run may go on' AS topic, 'runs' AS unit, is_open AS touched, runs AS of_all
        FROM counted
        UNION ALL SELECT 2, 'cut: the stream breaks off', 'runs', truncated, runs FROM counted
        UNION ALL SELECT 3, 'the end contradicts the lines', 'runs', inconsistent, runs FROM counted
        UNION ALL SELECT 4, 'the wire writes no end', 'runs', undecidable, runs FROM counted
        UNION ALL SELECT 5, 'no time on record', 'runs', timeless, runs FROM counted
        UNION ALL SELECT 6, 'tokens unknown', 'runs', without_tokens, runs FROM counted
        UNION ALL SELECT 7, 'tokens are a lower bound', 'runs', tokens_bound, runs FROM counted
        UNION ALL SELECT 8, 'vendor cost unknown', 'runs', without_cost, runs FROM counted
        UNION ALL SELECT 9, 'denied calls unknown', 'runs', without_decisions, runs FROM counted
        UNION ALL SELECT 10, 'denied calls are a lower bound', 'runs', denials_bound, runs FROM counted
        UNION ALL SELECT 11, 'unfinished calls unknown', 'runs', without_results, runs FROM counted
        UNION ALL SELECT 12, 'calls may yet finish', 'runs', unfinished_inexact, runs FROM counted
        UNION ALL SELECT 13, 'shown by another run too, left out of totals', 'runs', shown_twice, runs FROM twice
        UNION ALL SELECT 14, 'refused', 'lines', refused_lines, all_lines FROM read_lines
        UNION ALL SELECT 15, 'refused whole', 'files', refused, files FROM read_lines
        UNION ALL SELECT 16, 'skipped', 'files', skipped, files FROM read_lines
        UNION ALL SELECT 17, 'unterminated last line, not yet read', 'files', pending, files FROM read_lines
    )
)
SELECT
    topic, unit, CAST(touched AS BIGINT) AS touched, CAST(of_all AS BIGINT) AS of_all,
    CASE WHEN of_all > 0 THEN CAST(touched AS DOUBLE) / CAST(of_all AS DOUBLE) END AS share
FROM listed
ORDER BY place;
