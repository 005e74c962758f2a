-- What the records of a call say
-- row: one call: a call id of a run and which opening of it (call_occurrence), or one call record without an id (lone)
-- from: events of kinds tool.requested, tool.started, tool.finished, and the decisions on the call
-- unknown: NULL = no record said it
-- not counted: shadows, results and decisions of calls that nobody requested. This is the part of tool_calls that needs
--   nothing but events; last_… are positions, so last_interrupt = last_finish says that the last result is one.
--   is_denied: the last decision denies. A denial that only a warning shows ends no call: without a result it is
--   still open (b10x writes a result for each call it refuses).
CREATE OR REPLACE VIEW call_records AS
WITH rows_of_calls AS (
    SELECT
        run_id, wire, call_id, call_occurrence, position, ts, kind, tool, parent_call_id, turn_id, decision,
        decided_by, reason, status, is_error, exit_code, duration_ms,
        kind = 'tool.finished' AS is_finish,
        kind IN ('tool.requested', 'tool.started') AS is_call,
        CASE WHEN call_id IS NULL THEN position END AS lone
    FROM events
    WHERE is_shadow IS NOT TRUE
        AND (kind IN ('tool.requested', 'tool.started', 'tool.finished') OR decision IS NOT NULL)
), calls AS (
    SELECT
        run_id, call_id, call_occurrence, lone, min(wire) AS wire,
        min(position) FILTER (WHERE is_call) AS opened,
        arg_min(tool, position) FILTER (WHERE is_call AND tool IS NOT NULL) AS called_tool,
        arg_max(tool, position) FILTER (WHERE tool IS NOT NULL) AS named_tool,
        arg_min(parent_call_id, position) FILTER (WHERE is_call AND parent_call_id IS NOT NULL) AS parent_call_id,
        arg_min(turn_id, position) FILTER (WHERE is_call AND turn_id IS NOT NULL) AS turn_id,
        min(ts) FILTER (WHERE kind = 'tool.requested') AS requested_ts,
        min(ts) FILTER (WHERE kind = 'tool.started') AS started_at,
        count(*) FILTER (WHERE kind = 'tool.requested') AS requests,
        count(*) FILTER (WHERE kind = 'tool.started') AS starts,
        max(position) FILTER (WHERE is_finish) AS last_finish,
        max(position) FILTER (WHERE is_finish AND status = 'interrupted') AS last_interrupt,
        arg_max(ts, position) FILTER (WHERE is_finish AND ts IS NOT NULL) AS finished_at,
        arg_max(duration_ms, position) FILTER (WHERE is_finish AND duration_ms IS NOT NULL) AS own_duration_ms,
        max(position) FILTER (WHERE is_finish AND is_error) AS last_error,
        max(position) FILTER (WHERE is_finish AND NOT is_error) AS last_success,
        max(position) FILTER (WHERE is_finish AND exit_code IS NOT NULL) AS last_exit,
        arg_max(exit_code, position) FILTER (WHERE is_finish AND exit_code IS NOT NULL) AS exit_code,
        max(position) FILTER (WHERE decision IS NOT NULL) AS last_decision,
        max(position) FILTER (WHERE decision = 'deny') AS last_denial,
        coalesce(max(position) FILTER (WHERE decision = 'deny' AND kind = 'warning'), -1) AS last_warned,
        arg_max(decision, position) FILTER (WHERE decision IS NOT NULL) AS decision,
        arg_max(coalesce(decided_by, ''), position) FILTER (WHERE decision IS NOT NULL) AS decided_by,
        arg_max(coalesce(reason, ''), position) FILTER (WHERE decision IS NOT NULL) AS decision_reason
    FROM rows_of_calls
    GROUP BY run_id, call_id, call_occurrence, lone
    HAVING bool_or(is_call)
)
SELECT
    *,
    coalesce(last_decision = last_denial AND (last_finish IS NOT NULL OR last_denial > last_warned), false)
        AS is_denied,
    coalesce(last_interrupt = last_finish, false) AS is_interrupted
FROM calls;
