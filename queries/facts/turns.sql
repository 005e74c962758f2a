-- Turns
-- row: one turn of a run, as the wire names it
-- from: events that name a turn
-- unknown: NULL = the record did not say; ended NULL = the wire writes no ends of turns in this run
-- not counted: shadows; runs whose wire has no turns have no row
CREATE OR REPLACE VIEW turns AS
WITH turned AS (
    SELECT
        run_id, turn_id, min(wire) AS wire, min(position) AS position, min(ts) AS first_at, max(ts) AS last_at,
        min(ts) FILTER (WHERE kind = 'turn.started') AS started_at,
        max(ts) FILTER (WHERE kind = 'turn.ended') AS ended_at,
        count(*) FILTER (WHERE kind = 'turn.ended') AS ends,
        count(*) FILTER (WHERE kind IN ('tool.requested', 'tool.started')) AS call_records,
        max(step) AS step,
        arg_max(reason, position) FILTER (WHERE kind = 'turn.ended' AND reason IS NOT NULL) AS stop_reason,
        count(*) AS events
    FROM events
    WHERE turn_id IS NOT NULL AND is_shadow IS NOT TRUE
    GROUP BY run_id, turn_id
), ending AS (
    SELECT run_id FROM turned WHERE ends > 0 GROUP BY run_id
)
SELECT
    t.run_id, t.wire, t.turn_id, coalesce(t.started_at, t.first_at) AS started_at, t.ended_at, t.last_at,
    CASE WHEN e.run_id IS NOT NULL THEN t.ends > 0 END AS is_ended, t.stop_reason, t.step, t.events, t.position
FROM turned AS t LEFT JOIN ending AS e ON e.run_id = t.run_id;
