-- Runs
-- row: one run
-- from: run_states, and the models its events and its own requests name
-- unknown: NULL = no record said so; models NULL = no model named; attributes NULL = no start record
-- not counted: second copies of a run (is_counted is false where another run shows the same work)
--   models: those of the requests that count; where no usage names one, those that any record names.
--   started_at is its earliest time; ended_at only of a run whose end was seen. attributes is what its start said;
--   working directory, branch and version of the agent are those of its start, though a session may change them.
CREATE OR REPLACE VIEW runs AS
WITH named AS (
    SELECT run_id, model, bool_or(usage_scope IS NOT NULL AND is_side_call IS NOT TRUE) AS is_used
    FROM events
    WHERE model IS NOT NULL AND is_shadow IS NOT TRUE AND is_side_call IS NOT TRUE
        AND (usage_key IS NULL OR usage_scope = 'cumulative')
    GROUP BY run_id, model
    UNION ALL
    SELECT run_id, model, true FROM usage_requests WHERE model IS NOT NULL AND NOT is_side_call
), once AS (
    SELECT run_id, model, bool_or(is_used) AS is_used FROM named GROUP BY run_id, model
), models AS (
    SELECT
        run_id,
        coalesce(
            list(model ORDER BY model) FILTER (WHERE model IS NOT NULL AND is_used),
            list(model ORDER BY model) FILTER (WHERE model IS NOT NULL)
        ) AS models
    FROM once
    GROUP BY run_id
)
SELECT
    s.run_id, s.wire, s.parent_run_id, s.adapter, s.task, s.variant, s.repetition, s.started_at, s.ended_at,
    s.last_seen_at, s.duration_ms, s.outcome, s.status, s.close_reason, s.completeness, s.completeness_reason,
    m.models, s.working_directory, s.git_branch, s.agent_version, s.agent_id, s.parent_call_id,
    s.attributes, s.end_attributes, s.sources, s.event_lines, s.event_rows, s.refused_lines,
    s.speaks,
    s.same_run_as, s.is_counted
FROM run_states AS s
LEFT JOIN models AS m ON m.run_id = s.run_id;
