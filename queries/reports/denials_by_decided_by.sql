-- Denials by decider
-- row: one decider and kind of evidence
-- from: decisions, run_states
-- unknown: decided_by NULL = no record says it
-- not counted: records: denied_calls are distinct calls, so a call denied for two reasons stands in two rows
-- by: tool, reason, decided_by, run
-- params: since, until, wire, run
-- picture: bar decided_by denied_calls
CREATE OR REPLACE VIEW report_denials_by_decided_by AS
WITH calls AS (
    SELECT decided_by, evidence, d.run_id, d.call_id, d.call_occurrence, s.is_whole, count(*) AS records
    FROM decisions AS d
    JOIN run_states AS s ON s.run_id = d.run_id
    WHERE d.decision = 'deny' AND s.is_counted
    GROUP BY decided_by, evidence, d.run_id, d.call_id, d.call_occurrence, s.is_whole,
    CASE WHEN d.call_id IS NULL THEN d.position END
), sums AS (
    SELECT
        decided_by, evidence, count(*) AS denied_calls, sum(records) AS records, count(DISTINCT run_id) AS runs,
        bool_or(NOT is_whole) AS is_lower_bound
    FROM calls
    GROUP BY decided_by, evidence
)
SELECT decided_by, evidence, denied_calls, CAST(records AS BIGINT) AS records, runs, is_lower_bound
FROM sums
ORDER BY denied_calls DESC, decided_by, evidence;
