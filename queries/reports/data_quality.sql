-- What is unknown, and what is a lower bound
-- row: one note, and how many runs it touches
-- from: run_metrics
-- unknown: none: this is where unknown is counted
-- not counted: runs with is_counted false
-- by: none
-- params: since, until, wire, run
-- picture: bar note percent
CREATE OR REPLACE VIEW report_data_quality AS
WITH notes AS (
    SELECT * FROM (VALUES
        (1, 'unknown', 'tokens'), (2, 'lower bound', 'tokens'), (3, 'unknown', 'cost'),
        (4, 'unknown', 'denied calls'), (5, 'lower bound', 'denied calls'), (6, 'unknown', 'unfinished calls'),
        (7, 'may change', 'unfinished calls'), (8, 'unknown', 'rate limits'), (9, 'unknown', 'start'),
        (10, 'unknown', 'duration'), (11, 'unknown', 'whether the run ended'), (12, 'incomplete', 'the run was cut'),
        (13, 'incomplete', 'the run is still open'), (14, 'incomplete', 'the end does not fit'),
        (15, 'incomplete', 'lines were refused')
    ) AS n(place, state, what)
), counted AS (
    SELECT
        n.place, n.state, n.what, count(*) AS of_runs,
        count(*) FILTER (WHERE CASE n.place
            WHEN 1 THEN m.total_tokens IS NULL
            WHEN 2 THEN m.tokens_are_lower_bound IS TRUE
            WHEN 3 THEN m.cost_usd IS NULL
            WHEN 4 THEN m.denied_calls IS NULL
            WHEN 5 THEN m.denials_are_lower_bound IS TRUE
            WHEN 6 THEN m.tool_calls_unfinished IS NULL
            WHEN 7 THEN m.unfinished_is_exact IS FALSE
            WHEN 8 THEN m.rate_limit_samples IS NULL
            WHEN 9 THEN m.started_at IS NULL
            WHEN 10 THEN m.duration_ms IS NULL
            WHEN 11 THEN m.completeness = 'undecidable'
            WHEN 12 THEN m.completeness = 'truncated'
            WHEN 13 THEN m.completeness = 'open'
            WHEN 14 THEN m.completeness = 'inconsistent'
            WHEN 15 THEN m.refused_lines > 0
        END) AS runs
    FROM notes AS n CROSS JOIN run_metrics AS m
    WHERE m.is_counted
    GROUP BY n.place, n.state, n.what
)
SELECT
    what || ': ' || state AS note, state, what, runs, of_runs,
    100 * CAST(runs AS DOUBLE) / CAST(of_runs AS DOUBLE) AS percent
FROM counted
ORDER BY place;
