-- Events
-- row: one event: a fact of a line; a line that carries several gives several rows with rising part
-- from: stored_events, with the run each belongs to (run_exceptions: runs read twice, runs in pieces, filters)
-- unknown: NULL = the record did not say; nothing is coalesced
-- not counted: second copies of a run, and runs outside the filters; is_shadow rows are here, but count nowhere
--   position rises with every event of a run and is unique in it: ORDER BY run_id, position.
CREATE OR REPLACE VIEW events AS
WITH exceptions AS NOT MATERIALIZED (FROM run_exceptions)
SELECT
    e.wire, e.source_id, e.line, e.part, e.byte_offset, e.run_id, e.run_id_origin, e.parent_run_id,
    e.agent_id, e.seq, e.ts, e.ts_origin, e.event, e.event_key, e.kind, e.is_shadow, e.call_id,
    e.call_occurrence, e.call_scope, e.parent_call_id, e.turn_id, e.step, e.request_id, e.requests, e.tool,
    e.decision, e.decided_by, e.evidence, e.status, e.outcome, e.is_error, e.exit_code, e.reason, e.message,
    e.path, e.duration_ms, e.model, e.effort, e.speed, e.context_tokens, e.context_window_tokens,
    e.text_chars, e.input_tokens, e.cache_read_tokens, e.cache_write_tokens, e.cache_write_1h_tokens,
    e.output_tokens, e.reasoning_tokens, e.input_includes_cache, e.usage_scope, e.usage_key, e.usage_is_final,
    e.is_side_call, e.cost_usd, e.limit_id, e.limit_name, e.limit_window_minutes, e.limit_used, e.limit_unit,
    e.limit_resets_at, e.limit_status, e.declared_events, e.end_rule, e.speaks, e.attributes, e.payload,
    e.raw, e.redactions,
    e.line * 1000000 + e.part AS position
FROM stored_events AS e
ANTI JOIN exceptions AS x ON x.source_id = e.source_id AND x.wire_run_id = e.run_id
WHERE (getvariable('only_wire') IS NULL OR e.wire = getvariable('only_wire'))
    AND (getvariable('only_run') IS NULL OR e.run_id = getvariable('only_run'))
UNION ALL
SELECT
    e.wire, e.source_id, e.line, e.part, e.byte_offset, x.run_id, e.run_id_origin, e.parent_run_id,
    e.agent_id, e.seq, e.ts, e.ts_origin, e.event, e.event_key, e.kind, e.is_shadow, e.call_id,
    e.call_occurrence, e.call_scope, e.parent_call_id, e.turn_id, e.step, e.request_id, e.requests, e.tool,
    e.decision, e.decided_by, e.evidence, e.status, e.outcome, e.is_error, e.exit_code, e.reason, e.message,
    e.path, e.duration_ms, e.model, e.effort, e.speed, e.context_tokens, e.context_window_tokens,
    e.text_chars, e.input_tokens, e.cache_read_tokens, e.cache_write_tokens, e.cache_write_1h_tokens,
    e.output_tokens, e.reasoning_tokens, e.input_includes_cache, e.usage_scope, e.usage_key, e.usage_is_final,
    e.is_side_call, e.cost_usd, e.limit_id, e.limit_name, e.limit_window_minutes, e.limit_used, e.limit_unit,
    e.limit_resets_at, e.limit_status, e.declared_events, e.end_rule, e.speaks, e.attributes, e.payload,
    e.raw, e.redactions,
    x.piece * 1000000000000000 + e.line * 1000000 + e.part AS position
FROM stored_events AS e
JOIN exceptions AS x ON x.source_id = e.source_id AND x.wire_run_id = e.run_id
WHERE NOT x.is_dropped;
