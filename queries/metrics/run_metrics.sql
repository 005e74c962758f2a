-- Runs in figures
-- row: one run
-- from: run_states, usage_owned, call_groups, run_counts
-- unknown: NULL = the run's stream cannot say, or no record of it did; never 0
-- not counted: second copies of a run; is_counted is false where another run shows the same work
--   Tokens leave side calls out, cost_usd does not. tokens_are_lower_bound and denials_are_lower_bound: the true figure
--   may be higher, be it that more may follow or that a record left a number out. unfinished_is_exact false: the run is
--   not closed, calls may yet finish. denied_calls are distinct calls. other_lines are data but no event of the run:
--   plain text between them, voice events. rate_limit_* are NULL where the stream cannot speak of limits.
--   requests_not_final: those whose recorded output is only a snapshot. A run
--   that shows only requests of other runs (a copy) has 0 of its own. It reads the parts of usage and tool_calls that
--   need events alone, so that one query goes over them a few times.
CREATE OR REPLACE VIEW run_metrics AS
WITH tokens AS (
    SELECT
        run_id,
        sum(input_tokens) FILTER (WHERE is_main) AS input_tokens,
        sum(uncached_input_tokens) FILTER (WHERE is_main) AS uncached_input_tokens,
        sum(cache_read_tokens) FILTER (WHERE is_main) AS cache_read_tokens,
        sum(cache_write_tokens) FILTER (WHERE is_main) AS cache_write_tokens,
        sum(cache_write_5m_tokens) FILTER (WHERE is_main) AS cache_write_5m_tokens,
        sum(cache_write_1h_tokens) FILTER (WHERE is_main) AS cache_write_1h_tokens,
        sum(output_tokens) FILTER (WHERE is_main) AS output_tokens,
        sum(reasoning_tokens) FILTER (WHERE is_main) AS reasoning_tokens,
        sum(TRY_CAST(cost_usd AS DECIMAL(18, 10))) FILTER (WHERE is_kept) AS cost,
        count(*) FILTER (WHERE requests > 0) AS named_requests, count(*) FILTER (WHERE is_main) AS main_rows,
        CASE WHEN count(is_final) FILTER (WHERE requests > 0) > 0 THEN
            count(*) FILTER (WHERE requests > 0 AND NOT is_final)
        END AS requests_not_final,
        bool_or(is_final IS NULL AND usage_scope IN ('snapshot', 'cumulative')) FILTER (WHERE is_main)
            AS is_partial,
        bool_or(is_final IS NULL AND usage_scope = 'delta') FILTER (WHERE is_main) AS is_added_up,
        bool_or(is_final IS NOT NULL) FILTER (WHERE is_main) AS is_stated,
        bool_or(NOT is_final) FILTER (WHERE is_main) AS is_not_final,
        bool_or(usage_scope IN ('snapshot', 'delta') AND is_final IS NOT NULL) FILTER (WHERE is_main)
            AS is_by_request,
        bool_or(is_part_unknown) FILTER (WHERE is_total)
            OR count(input_tokens) FILTER (WHERE is_total) < count(*) FILTER (WHERE is_total)
            OR count(output_tokens) FILTER (WHERE is_total) < count(*) FILTER (WHERE is_total)
            OR count(cache_read_tokens) FILTER (WHERE is_total)
                BETWEEN 1 AND count(*) FILTER (WHERE is_total) - 1
            OR count(cache_write_tokens) FILTER (WHERE is_total)
                BETWEEN 1 AND count(*) FILTER (WHERE is_total) - 1
            OR count(cache_write_1h_tokens) FILTER (WHERE is_total)
                BETWEEN 1 AND count(*) FILTER (WHERE is_total) - 1
            OR count(reasoning_tokens) FILTER (WHERE is_total)
                BETWEEN 1 AND count(*) FILTER (WHERE is_total) - 1
            OR count(uncached_input_tokens) FILTER (WHERE is_total)
                BETWEEN 1 AND count(*) FILTER (WHERE is_total) - 1 AS has_gaps
    FROM (
        SELECT
            *, is_kept AND NOT is_side_call AS is_main,
            is_kept AND NOT is_side_call AND usage_scope <> 'cost' AS is_total
        FROM usage_owned
    )
    GROUP BY run_id
), calls AS (
    SELECT
        run_id, count(opened) AS tool_calls,
        count(*) FILTER (WHERE last_denial IS NOT NULL) AS denied_calls,
        count(opened) FILTER (WHERE last_error = last_finish) AS failed_calls,
        count(opened) FILTER (WHERE NOT is_denied AND is_interrupted) AS interrupted,
        count(opened) FILTER (WHERE NOT is_denied AND call_id IS NOT NULL AND last_finish IS NULL) AS without_result,
        count(opened) FILTER (WHERE NOT is_denied AND call_id IS NOT NULL AND last_finish IS NULL AND starts = 0)
            AS without_start
    FROM call_groups
    GROUP BY run_id
), joined AS (
    SELECT
        s.*, k.* EXCLUDE (run_id),
        t.* EXCLUDE (run_id) REPLACE (
            CASE WHEN k.has_named_requests AND t.main_rows IS NULL THEN 0 ELSE t.input_tokens END AS input_tokens,
            CASE WHEN k.has_named_requests AND t.main_rows IS NULL THEN 0 ELSE t.uncached_input_tokens END
                AS uncached_input_tokens,
            CASE WHEN k.has_named_requests AND t.main_rows IS NULL THEN 0 ELSE t.output_tokens END AS output_tokens
        ),
        k.has_named_requests AND t.main_rows IS NULL AS owns_none,
        CASE WHEN c.tool_calls IS NULL THEN 0 ELSE c.tool_calls END AS tool_calls,
        CASE WHEN c.denied_calls IS NULL THEN 0 ELSE c.denied_calls END AS denied_calls,
        CASE WHEN c.failed_calls IS NULL THEN 0 ELSE c.failed_calls END AS failed_calls,
        CASE WHEN c.run_id IS NULL THEN 0 ELSE c.interrupted END AS interrupted,
        CASE WHEN c.run_id IS NULL THEN 0 ELSE c.without_result END AS without_result,
        CASE WHEN c.run_id IS NULL THEN 0 ELSE c.without_start END AS without_start
    FROM run_states AS s
    LEFT JOIN tokens AS t ON t.run_id = s.run_id
    LEFT JOIN calls AS c ON c.run_id = s.run_id
    LEFT JOIN run_counts AS k ON k.run_id = s.run_id
)
SELECT
    run_id, wire, adapter, task, variant, repetition, parent_run_id, working_directory, git_branch,
    started_at, ended_at, duration_ms, completeness, completeness_reason, outcome, status, close_reason,
    event_lines - other_lines AS events, other_lines, refused_lines,
    CAST(input_tokens AS BIGINT) AS input_tokens,
    CAST(uncached_input_tokens AS BIGINT) AS uncached_input_tokens,
    CAST(cache_read_tokens AS BIGINT) AS cache_read_tokens,
    CAST(cache_write_tokens AS BIGINT) AS cache_write_tokens,
    CAST(cache_write_5m_tokens AS BIGINT) AS cache_write_5m_tokens,
    CAST(cache_write_1h_tokens AS BIGINT) AS cache_write_1h_tokens,
    CAST(output_tokens AS BIGINT) AS output_tokens,
    CAST(reasoning_tokens AS BIGINT) AS reasoning_tokens,
    CAST(input_tokens AS BIGINT) + CAST(output_tokens AS BIGINT) AS total_tokens,
    CASE
        WHEN owns_none THEN damaged_lines > 0 OR completeness = 'truncated'
        WHEN input_tokens IS NULL AND output_tokens IS NULL THEN NULL
        ELSE is_partial OR has_gaps OR (is_added_up AND NOT is_whole) OR is_not_final IS TRUE
            OR (is_stated AND completeness = 'truncated') OR (is_by_request AND damaged_lines > 0) IS TRUE
            OR (is_stated AND NOT is_by_request AND completeness = 'open') IS TRUE
    END AS tokens_are_lower_bound,
    CASE WHEN named_requests > 0 THEN coalesce(requests, 0) + named_requests ELSE requests END AS requests,
    requests_not_final, CAST(cost AS DOUBLE) AS cost_usd, tool_calls, failed_calls,
    CASE WHEN speaks_decisions THEN denied_calls END AS denied_calls,
    CASE WHEN speaks_decisions THEN NOT is_whole END AS denials_are_lower_bound,
    CASE
        WHEN speaks_results AND speaks_starts THEN interrupted + without_result - without_start
        WHEN speaks_results THEN interrupted + without_result
    END AS tool_calls_unfinished,
    CASE WHEN speaks_results THEN completeness = 'closed' END AS unfinished_is_exact,
    CASE WHEN speaks_starts THEN without_start END AS tool_calls_not_started,
    CASE WHEN speaks_limits THEN rate_limit_samples END AS rate_limit_samples,
    CASE WHEN speaks_limits THEN rate_limit_rejections END AS rate_limit_rejections,
    rate_limit_peak_percent, rate_limit_markers, messages, errors, warnings, retries, compactions, opaque_records,
    auth_expired, file_changes, speaks, same_run_as, is_counted
FROM joined;
