-- Approvals
-- row: one call that needed a person's approval
-- from: decisions that ask, and the approvals that answer
-- unknown: NULL = the record did not say; state waiting = no answer is in the stream (is_exact: the run is closed)
-- not counted: calls that a policy decided alone
CREATE OR REPLACE VIEW approvals AS
WITH asked AS (
    SELECT
        run_id, wire, call_id, call_occurrence, min(position) AS position, max(tool) AS tool,
        min(ts) FILTER (WHERE decision = 'ask') AS asked_at,
        arg_min(reason, position) FILTER (WHERE decision = 'ask' AND reason IS NOT NULL) AS asked_why,
        max(ts) FILTER (WHERE decision <> 'ask') AS answered_at,
        arg_max(decision, position) FILTER (WHERE decision <> 'ask') AS answer,
        arg_max(decided_by, position) FILTER (WHERE decision <> 'ask' AND decided_by IS NOT NULL) AS answered_by,
        arg_max(reason, position) FILTER (WHERE decision <> 'ask' AND reason IS NOT NULL) AS answered_why
    FROM decisions
    WHERE decision = 'ask' OR kind = 'approval'
    GROUP BY run_id, wire, call_id, call_occurrence
)
SELECT
    a.run_id, a.wire, a.call_id, a.call_occurrence, a.tool, a.asked_at, a.asked_why,
    CASE a.answer WHEN 'deny' THEN 'denied' WHEN 'allow' THEN 'granted' ELSE coalesce(a.answer, 'waiting') END AS state,
    a.answered_by, a.answered_at, a.answered_why,
    CASE
        WHEN a.answered_at >= a.asked_at THEN (epoch_us(a.answered_at) - epoch_us(a.asked_at)) // 1000
    END AS waited_ms,
    s.completeness = 'closed' AS is_exact, a.position
FROM asked AS a JOIN run_states AS s ON s.run_id = a.run_id;
