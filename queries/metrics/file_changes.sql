-- File changes
-- row: one record that a file was to be changed
-- from: events of kind file.changed, and the calls they belong to
-- unknown: path NULL = the record names none; call_state NULL = the record names no call
-- not counted: shadows. A record at the request says nothing about success: call_state does
CREATE OR REPLACE VIEW file_changes AS
SELECT
    e.run_id, e.wire, e.ts, e.path, e.tool, e.call_id, e.call_occurrence, c.state AS call_state, e.source_id,
    e.line, e.position
FROM events AS e
LEFT JOIN tool_calls AS c
    ON c.run_id = e.run_id AND c.call_id = e.call_id AND c.call_occurrence IS NOT DISTINCT FROM e.call_occurrence
WHERE e.kind = 'file.changed' AND e.is_shadow IS NOT TRUE;
