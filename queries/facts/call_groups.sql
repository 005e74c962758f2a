-- What the records of a call id say
-- row: a call id of a run and which opening of it (call_occurrence), or one record of a call without an id (lone)
-- from: events of kinds tool.requested, tool.started, tool.finished, and the decisions on the call; scoped_calls
-- unknown: NULL = no record said it; opened NULL = nobody requested it: a result or a decision without a call
-- not counted: shadows. This is the part of tool_calls that needs nothing but events; last_… are positions, so
--   last_interrupt = last_finish says that the last result is one. A call whose id is unique lake-wide (call_scope)
--   stands once, with its owner; records of it in other runs follow after the owner's own.
--   is_denied: the last decision denies. A denial that only a warning shows ends no call: without a result it is
--   still open (b10x writes a result for each call it refuses). A denial that only a list names (reason listed) gives
--   way to what another record of it says.
CREATE OR REPLACE VIEW call_groups AS
WITH rows_of_calls AS (
    SELECT
        run_id, wire, call_id, call_occurrence, position, ts, kind, tool, parent_call_id, turn_id, decision,
        decided_by, reason, status, is_error, exit_code, duration_ms
    FROM events
    WHERE is_shadow IS NOT TRUE AND (call_scope IS NULL OR call_id IS NULL)
        AND (kind IN ('tool.requested', 'tool.started', 'tool.finished') OR decision IS NOT NULL)
    UNION ALL
    SELECT
        run_id, wire, call_id, call_occurrence, position, ts, kind, tool, parent_call_id, turn_id, decision,
        decided_by, reason, status, is_error, exit_code, duration_ms
    FROM scoped_calls
), marked AS (
    SELECT
        *, kind = 'tool.finished' AS is_finish, kind IN ('tool.requested', 'tool.started') AS is_call,
        CASE WHEN call_id IS NULL THEN position END AS lone
    FROM rows_of_calls
), grouped AS (
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
        arg_max(coalesce(reason, ''), position) FILTER (WHERE decision IS NOT NULL) AS decision_reason,
        arg_max(coalesce(decided_by, ''), position) FILTER (WHERE decision = 'deny' AND reason <> 'listed')
            AS denied_by,
        arg_max(reason, position) FILTER (WHERE decision = 'deny' AND reason <> 'listed') AS denied_why
    FROM marked
    GROUP BY run_id, call_id, call_occurrence, lone
)
SELECT
    * EXCLUDE (decided_by, decision_reason, denied_by, denied_why),
    CASE
        WHEN decision = 'deny' AND decision_reason = 'listed' AND denied_why IS NOT NULL THEN denied_by
        ELSE decided_by
    END AS decided_by,
    CASE
        WHEN decision = 'deny' AND decision_reason = 'listed' AND denied_why IS NOT NULL THEN denied_why
        ELSE decision_reason
    END AS decision_reason,
    coalesce(last_decision = last_denial AND (last_finish IS NOT NULL OR last_denial > last_warned), false)
        AS is_denied,
    coalesce(last_interrupt = last_finish, false) AS is_interrupted
FROM grouped;
