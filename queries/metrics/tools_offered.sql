-- Tools offered and used
-- row: run × tool that was offered, withheld, called or denied
-- from: events of kind tool.offered, call_records, decisions, run_states
-- unknown: offered NULL = the stream does not say what it offers; withheld NULL = nor what it withholds; denied_calls
--   NULL = it cannot speak of decisions; tool NULL = a call without a name
-- not counted: shadows. A tool may be called that was never offered
CREATE OR REPLACE VIEW tools_offered AS
WITH stated AS (
    SELECT
        run_id, tool, bool_or(status = 'offered') AS is_offered, bool_or(status = 'withheld') AS is_withheld,
        min(reason) FILTER (WHERE status = 'withheld') AS withheld_reason
    FROM events
    WHERE kind = 'tool.offered'
    GROUP BY run_id, tool
), called AS (
    SELECT run_id, tool, count(*) AS calls
    FROM (SELECT run_id, coalesce(called_tool, named_tool) AS tool FROM call_records)
    GROUP BY run_id, tool
), denied AS (
    SELECT run_id, tool, count(*) AS calls
    FROM (
        SELECT run_id, tool, call_id, call_occurrence, CASE WHEN call_id IS NULL THEN position END AS lone
        FROM decisions
        WHERE decision = 'deny'
        GROUP BY run_id, tool, call_id, call_occurrence, CASE WHEN call_id IS NULL THEN position END
    )
    GROUP BY run_id, tool
), facts AS (
    SELECT run_id, tool, is_offered, is_withheld, withheld_reason, 0 AS calls, 0 AS denied_calls FROM stated
    UNION ALL
    SELECT run_id, tool, NULL, NULL, NULL, calls, 0 FROM called
    UNION ALL
    SELECT run_id, tool, NULL, NULL, NULL, 0, calls FROM denied
), tools AS (
    SELECT
        run_id, tool, bool_or(is_offered) AS is_offered, bool_or(is_withheld) AS is_withheld,
        min(withheld_reason) AS withheld_reason, max(calls) AS calls, max(denied_calls) AS denied_calls
    FROM facts
    GROUP BY run_id, tool
)
SELECT
    t.run_id, s.wire, s.adapter, t.tool,
    CASE WHEN s.speaks_offered THEN coalesce(t.is_offered, false) END AS offered,
    CASE WHEN s.speaks_withheld THEN coalesce(t.is_withheld, false) END AS withheld,
    t.withheld_reason, t.calls,
    CASE WHEN s.speaks_decisions THEN t.denied_calls END AS denied_calls,
    NOT s.is_whole AS denials_are_lower_bound, s.completeness, s.is_counted
FROM tools AS t JOIN run_states AS s ON s.run_id = t.run_id;
