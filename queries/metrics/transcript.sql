-- Transcript
-- row: one event of a run that a reader of the run wants to see
-- from: events; the text is taken out of the payload
-- unknown: text NULL = the wire keeps none, or it was removed before we read it
-- not counted: shadows, usage, rate limits, opaque and offered tools. Filter by run_id: the payload is read only there
CREATE OR REPLACE VIEW transcript AS
SELECT
    run_id, position, wire, ts, turn_id, step, kind, event, tool, call_id, call_occurrence, decision, decided_by,
    status,
    is_error, exit_code, reason, duration_ms, model, text_chars,
    CASE
        WHEN payload IS NULL OR part > 0 THEN message
        WHEN NOT json_valid(payload) THEN payload
        WHEN kind IN ('tool.requested', 'tool.started') THEN coalesce(
            (payload->>'input'), (payload->>'$.payload.input'), (payload->>'$.payload.command'), (payload->>'command'),
            (payload->>'$.event.call.input'), (payload->>'$.record.event.call.input'), (payload->>'$.call.input')
        )
        WHEN kind = 'tool.finished' THEN coalesce(
            (payload->>'content'), (payload->>'$.payload.output'), (payload->>'output'),
            (payload->>'$.event.result.summary'),
            (payload->>'$.record.event.result.summary'), (payload->>'$.result.summary')
        )
        WHEN kind IN ('message', 'reasoning', 'injection', 'usage') THEN coalesce(
            (payload->>'text'), (payload->>'$.payload.text'), (payload->>'$.event.output.content'),
            (payload->>'$.record.event.output.content'), (payload->>'$.output.content')
        )
        ELSE message
    END AS text,
    source_id, line, part
FROM events
WHERE is_shadow IS NOT TRUE
    AND kind NOT IN ('rate_limit', 'opaque', 'tool.offered', 'request', 'context')
    AND (kind <> 'usage' OR text_chars IS NOT NULL);
