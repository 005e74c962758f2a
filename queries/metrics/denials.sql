-- Denials
-- row: tool × evidence × decider × reason
-- from: decisions
-- unknown: tool, decided_by or reason NULL = no record says it
-- not counted: runs with is_counted false. denied_calls are distinct calls, never records; a record that names no call
--   counts as one. A call denied twice may stand in two rows, so rows need not add up to run_metrics
CREATE OR REPLACE VIEW denials AS
WITH denied AS (
    SELECT
        d.run_id, d.tool, d.evidence, d.decided_by, d.reason, d.call_id, d.call_occurrence,
        CASE WHEN d.call_id IS NULL THEN d.position END AS lone, s.is_whole
    FROM decisions AS d
    JOIN run_states AS s ON s.run_id = d.run_id
    WHERE d.decision = 'deny' AND s.is_counted
), calls AS (
    SELECT tool, evidence, decided_by, reason, run_id, call_id, call_occurrence, lone,
        bool_and(is_whole) AS is_whole, count(*) AS records
    FROM denied
    GROUP BY tool, evidence, decided_by, reason, run_id, call_id, call_occurrence, lone
), sums AS (
    SELECT
        tool, evidence, decided_by, reason, count(*) AS denied_calls, sum(records) AS records,
        count(DISTINCT run_id) AS runs, bool_or(NOT is_whole) AS is_lower_bound
    FROM calls
    GROUP BY tool, evidence, decided_by, reason
)
SELECT tool, evidence, decided_by, reason, denied_calls, CAST(records AS BIGINT) AS records, runs, is_lower_bound
FROM sums;
