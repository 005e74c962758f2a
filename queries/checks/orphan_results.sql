-- Every result belongs to a call
-- row: one run with results of calls that nobody requested; there must be none
-- from: events, scoped_calls
-- unknown: unknown sums are compared as unknown
-- not counted: results without a call id
CREATE OR REPLACE VIEW check_orphan_results AS
WITH records AS (
    SELECT run_id, call_id, call_occurrence, kind, position
    FROM events
    WHERE kind IN ('tool.requested', 'tool.started', 'tool.finished') AND call_id IS NOT NULL
        AND call_scope IS NULL AND is_shadow IS NOT TRUE
    UNION ALL
    SELECT run_id, call_id, call_occurrence, kind, position
    FROM scoped_calls
    WHERE kind IN ('tool.requested', 'tool.started', 'tool.finished')
), ids AS (
    SELECT
        run_id, call_id, call_occurrence,
        bool_or(kind IN ('tool.requested', 'tool.started')) AS is_called,
        count(*) FILTER (WHERE kind = 'tool.finished') AS results, min(position) AS position
    FROM records
    GROUP BY run_id, call_id, call_occurrence
)
SELECT run_id, call_id, call_occurrence, results, position
FROM ids
WHERE NOT is_called;
