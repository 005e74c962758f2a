-- Coverage
-- row: wire × question, and how many of its runs can answer it
-- from: run_metrics, runs
-- unknown: none: this is where unknown is counted
-- not counted: runs with is_counted false
--   answered: runs with an answer; exact: runs whose answer is no bound; silent: runs whose stream cannot speak of it.
CREATE OR REPLACE VIEW coverage AS
WITH questions AS (
    SELECT * FROM (VALUES
        (1, 'tokens', 'tokens'), (2, 'cached tokens', 'tokens'), (3, 'reasoning tokens', 'tokens'),
        (4, 'model requests', 'tokens'), (5, 'cost', 'cost'), (6, 'rate limits', 'limits'),
        (7, 'denied calls', 'decisions'), (8, 'unfinished calls', 'results'), (9, 'tools offered', 'offered'),
        (10, 'tools withheld', 'withheld'), (11, 'completeness', 'end'), (12, 'outcome', 'outcome'),
        (13, 'times', 'clock')
    ) AS q(place, question, topic)
), answers AS (
    SELECT
        m.wire, q.place, q.question,
        ' ' || m.speaks || ' ' LIKE '% ' || q.topic || ' %' AS is_spoken,
        CASE q.place
            WHEN 1 THEN m.input_tokens IS NOT NULL
            WHEN 2 THEN m.cache_read_tokens IS NOT NULL
            WHEN 3 THEN m.reasoning_tokens IS NOT NULL
            WHEN 4 THEN m.requests IS NOT NULL
            WHEN 5 THEN m.cost_usd IS NOT NULL
            WHEN 6 THEN m.rate_limit_samples IS NOT NULL
            WHEN 7 THEN m.denied_calls IS NOT NULL
            WHEN 8 THEN m.tool_calls_unfinished IS NOT NULL
            WHEN 9 THEN ' ' || m.speaks || ' ' LIKE '% offered %'
            WHEN 10 THEN ' ' || m.speaks || ' ' LIKE '% withheld %'
            WHEN 11 THEN m.completeness <> 'undecidable'
            WHEN 12 THEN m.outcome IS NOT NULL
            WHEN 13 THEN m.started_at IS NOT NULL
        END AS is_answered,
        CASE
            WHEN q.place <= 3 THEN m.tokens_are_lower_bound IS FALSE
            WHEN q.place <= 6 THEN m.completeness = 'closed'
            WHEN q.place = 7 THEN m.denials_are_lower_bound IS FALSE
            WHEN q.place = 8 THEN m.unfinished_is_exact IS TRUE
            ELSE true
        END AS is_sure
    FROM run_metrics AS m CROSS JOIN questions AS q
    WHERE m.is_counted
)
SELECT
    wire, question, count(*) AS runs, count(*) FILTER (WHERE is_answered) AS answered,
    count(*) FILTER (WHERE is_answered AND is_sure) AS exact,
    count(*) FILTER (WHERE question <> 'completeness' AND is_spoken IS NOT TRUE) AS silent, place
FROM answers
GROUP BY wire, question, place;
