-- Tool calls
-- row: one call: a call id of a run and which opening of it (call_occurrence), or one call record without an id
-- from: call_records, run_states
-- unknown: NULL = the record did not say; state undecidable = the call has no id, so its result cannot be known
-- not counted: shadows, results and decisions of calls that nobody requested (see orphan_results)
--   state: denied (its last decision), interrupted, finished, not_started (allowed, but the stream shows starts and it
--   has none), unfinished. A denied call may have a result. Of several results the last counts.
CREATE OR REPLACE VIEW tool_calls AS
SELECT
    c.run_id, c.wire, c.call_id, c.call_occurrence, c.parent_call_id, c.turn_id,
    coalesce(c.called_tool, c.named_tool) AS tool,
    coalesce(c.requested_ts, c.started_at) AS requested_at, c.started_at, c.finished_at,
    CASE
        WHEN c.own_duration_ms IS NOT NULL THEN c.own_duration_ms
        WHEN c.finished_at >= coalesce(c.started_at, c.requested_ts)
            THEN (epoch_us(c.finished_at) - epoch_us(coalesce(c.started_at, c.requested_ts))) // 1000
    END AS duration_ms,
    c.decision, nullif(c.decided_by, '') AS decided_by, nullif(c.decision_reason, '') AS decision_reason,
    CASE
        WHEN c.is_denied THEN 'denied'
        WHEN c.call_id IS NULL THEN 'undecidable'
        WHEN c.is_interrupted THEN 'interrupted'
        WHEN c.last_finish IS NOT NULL THEN 'finished'
        WHEN c.starts = 0 AND s.speaks_starts THEN 'not_started'
        ELSE 'unfinished'
    END AS state,
    CASE
        WHEN c.last_error = c.last_finish THEN true
        WHEN c.last_success = c.last_finish THEN false
    END AS is_error,
    CASE WHEN c.last_exit = c.last_finish THEN c.exit_code END AS exit_code,
    s.completeness = 'closed' AS is_exact, s.is_counted, c.opened AS position
FROM call_records AS c JOIN run_states AS s ON s.run_id = c.run_id;
