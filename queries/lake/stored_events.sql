-- Events as stored
-- row: one event as it is stored
-- from: the event files of the pinned version of the lake (open.sql sets event_files)
-- unknown: NULL = the record did not say
-- not counted: nothing: copies of a run read twice are here too, so that lines can be accounted for
--   All files of a lake have the same columns (its schema version says which), so only the first is opened to plan.
CREATE OR REPLACE VIEW stored_events AS
SELECT
    wire, source_id, line, part, byte_offset, run_id, run_id_origin, parent_run_id, agent_id, seq, ts,
    ts_origin, event, event_key, kind, is_shadow, call_id, call_occurrence, call_scope, parent_call_id,
    turn_id, step, request_id, requests, tool, decision, decided_by, evidence, status, outcome, is_error,
    exit_code, reason, message, path, duration_ms, model, effort, speed, context_tokens,
    context_window_tokens, text_chars, input_tokens, cache_read_tokens, cache_write_tokens,
    cache_write_1h_tokens, output_tokens, reasoning_tokens, input_includes_cache, usage_scope, usage_key,
    usage_is_final, is_side_call, cost_usd, limit_id, limit_name, limit_window_minutes, limit_used,
    limit_unit, limit_resets_at, limit_status, declared_events, end_rule, speaks, attributes, payload, raw,
    redactions
FROM read_parquet(getvariable('event_files'), hive_partitioning = true);
