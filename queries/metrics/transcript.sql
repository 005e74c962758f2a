-- Transcript
-- row: one event of a run that a reader of the run wants to see
-- from: events; the text is taken out of the payload
-- unknown: text NULL = the wire keeps none, or it was removed before we read it
-- not counted: shadows, usage, rate limits, opaque and offered tools, second copies of a record (event_key) in one run.
--   Filter by run_id: the payload is read only there. Of a line that holds several blocks only the first has its text
CREATE OR REPLACE VIEW transcript AS
WITH told AS NOT MATERIALIZED (
    SELECT
        run_id, position, wire, ts, turn_id, step, kind, event, tool, call_id, call_occurrence, decision, decided_by,
        status,
        is_error, exit_code, reason, duration_ms, model, text_chars,
        CASE
            WHEN payload IS NULL OR part > 0 THEN message
            WHEN NOT json_valid(payload) THEN payload
            WHEN kind IN ('tool.requested', 'tool.started') THEN coalesce(
                (payload->>'input'), (payload->>'$.payload.input'), (payload->>'$.payload.command'),
                (payload->>'command'),
                (payload->>'$.event.call.input'), (payload->>'$.record.event.call.input'), (payload->>'$.call.input'),
                (payload->>'$.message.content[0].input'), (payload->>'$.payload.arguments'),
                (payload->>'$.item.command'), (payload->>'$.item.arguments'), (payload->>'$.item.query'),
                (payload->>'arguments')
            )
            WHEN kind = 'tool.finished' THEN coalesce(
                (payload->>'content'), (payload->>'$.payload.output'), (payload->>'output'),
                (payload->>'$.event.result.summary'),
                (payload->>'$.record.event.result.summary'), (payload->>'$.result.summary'),
                (payload->>'$.message.content[0].content'), (payload->>'$.item.aggregated_output')
            )
            WHEN kind IN ('message', 'reasoning', 'injection', 'usage') THEN coalesce(
                (payload->>'text'), (payload->>'$.payload.text'), (payload->>'$.event.output.content'),
                (payload->>'$.record.event.output.content'), (payload->>'$.output.content'),
                (payload->>'$.message.content[0].text'), (payload->>'$.message.content[0].thinking'),
                (payload->>'$.message.content'), (payload->>'$.payload.content[0].text'),
                (payload->>'$.payload.summary[0].text'), (payload->>'$.item.text'), (payload->>'$.content[0].text')
            )
            ELSE message
        END AS text,
        source_id, line, part, event_key
    FROM events
    WHERE is_shadow IS NOT TRUE
        AND kind NOT IN ('rate_limit', 'opaque', 'tool.offered', 'request', 'context')
        AND (kind <> 'usage' OR text_chars IS NOT NULL)
)
SELECT
    run_id, position, wire, ts, turn_id, step, kind, event, tool, call_id, call_occurrence, decision, decided_by,
    status, is_error, exit_code, reason, duration_ms, model, text_chars, text, source_id, line, part
FROM told
WHERE event_key IS NULL
UNION ALL
SELECT
    run_id, position, wire, ts, turn_id, step, kind, event, tool, call_id, call_occurrence, decision, decided_by,
    status, is_error, exit_code, reason, duration_ms, model, text_chars, text, source_id, line, part
FROM told
WHERE event_key IS NOT NULL
QUALIFY row_number() OVER (PARTITION BY run_id, event_key, part ORDER BY position) = 1;
