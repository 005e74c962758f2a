-- Phase of the state machine
-- row: one platonic-core run
-- from: the last event of the run that moves the machine, run_states
-- unknown: phase NULL = an event that this list does not know
-- not counted: lines that are refused do not move the machine; voice events neither
CREATE OR REPLACE VIEW run_phase AS
WITH moving AS (
    SELECT run_id, position, ts, seq, event, decision, turn_id, step, call_id, tool, reason,
        (attributes->>'proposed_calls') AS proposed_calls
    FROM events
    WHERE wire = 'platonic-core' AND event <> 'voice_events'
), ends AS (
    SELECT run_id, max(position) AS position FROM moving GROUP BY run_id
)
SELECT
    m.run_id, s.completeness, s.outcome,
    CASE m.event
        WHEN 'run_started' THEN 'ready for context'
        WHEN 'context_built' THEN 'ready to request model'
        WHEN 'context_compacted' THEN 'context compacted'
        WHEN 'model_requested' THEN 'awaiting response'
        WHEN 'model_failed' THEN 'ready to request model'
        WHEN 'model_responded' THEN CASE m.proposed_calls WHEN '0' THEN 'turn concluded' ELSE 'awaiting tool call' END
        WHEN 'tool_proposals_rejected' THEN 'turn concluded'
        WHEN 'tool_call_proposed' THEN 'awaiting policy'
        WHEN 'policy_evaluated' THEN CASE m.decision
            WHEN 'allow' THEN 'ready to execute' WHEN 'ask' THEN 'awaiting approval' WHEN 'deny' THEN 'policy denied'
        END
        WHEN 'approval_granted' THEN 'ready to execute'
        WHEN 'approval_denied' THEN 'approval denied'
        WHEN 'tool_started' THEN 'tool running'
        WHEN 'tool_finished' THEN 'turn concluded'
        WHEN 'tool_failed' THEN 'tool failed'
        WHEN 'run_finished' THEN 'finished'
        WHEN 'run_failed' THEN 'failed'
    END AS phase,
    m.event AS last_event, m.ts AS last_at, CASE WHEN m.seq < 9223372036854775807 THEN m.seq + 1 END AS next_seq,
    m.turn_id, m.step, m.call_id, m.tool, m.reason,
    s.refused_lines
FROM moving AS m
SEMI JOIN ends AS e ON e.run_id = m.run_id AND e.position = m.position
JOIN run_states AS s ON s.run_id = m.run_id;
