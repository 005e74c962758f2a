-- Results without a call
-- row: one call of a run that has results, but that nobody requested
-- from: events, scoped_calls
-- unknown: none
-- not counted: results without a call id. tool_calls has no row for them
--   A history that was cut or compacted begins with some; else the stream has lost the call.
CREATE OR REPLACE VIEW orphan_results AS
WITH records AS (
    SELECT run_id, wire, call_id, call_occurrence, kind, tool, position
    FROM events
    WHERE kind IN ('tool.requested', 'tool.started', 'tool.finished') AND call_id IS NOT NULL
        AND call_scope IS NULL AND is_shadow IS NOT TRUE
    UNION ALL
    SELECT run_id, wire, call_id, call_occurrence, kind, tool, position
    FROM scoped_calls
    WHERE kind IN ('tool.requested', 'tool.started', 'tool.finished')
), ids AS (
    SELECT
        run_id, min(wire) AS wire, call_id, call_occurrence, min(tool) AS tool,
        bool_or(kind IN ('tool.requested', 'tool.started')) AS is_called,
        count(*) FILTER (WHERE kind = 'tool.finished') AS results, min(position) AS position
    FROM records
    GROUP BY run_id, call_id, call_occurrence
)
SELECT run_id, wire, call_id, call_occurrence, tool, results, position
FROM ids
WHERE NOT is_called;
