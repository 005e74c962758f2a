-- What happened in a run, counted
-- row: one run that has events
-- from: events
-- unknown: requests NULL = no record says for how many model requests it stands
-- not counted: shadows. denied_calls are distinct calls; a denial that names no call counts as one
CREATE OR REPLACE VIEW run_counts AS
WITH counts AS (
    SELECT
        run_id,
        count(*) FILTER (WHERE kind = 'message') AS messages,
        count(*) FILTER (WHERE kind = 'error') AS errors,
        count(*) FILTER (WHERE kind = 'warning') AS warnings,
        count(*) FILTER (WHERE kind = 'retry') AS retries,
        count(*) FILTER (WHERE kind = 'compaction') AS compactions,
        count(*) FILTER (WHERE kind = 'opaque') AS opaque_records,
        count(*) FILTER (WHERE kind = 'auth.expired') AS auth_expired,
        count(*) FILTER (WHERE kind = 'file.changed') AS file_changes,
        count(*) FILTER (WHERE kind = 'turn.started') AS turns_started,
        count(*) FILTER (WHERE kind = 'rate_limit') AS rate_limit_rows,
        count(*) FILTER (
            WHERE kind = 'rate_limit' AND (
                limit_id IS NOT NULL OR limit_used IS NOT NULL OR limit_status IS NOT NULL
                OR limit_resets_at IS NOT NULL
            )
        ) AS rate_limit_samples,
        count(*) FILTER (WHERE kind = 'rate_limit' AND limit_status LIKE '%reject%') AS rate_limit_rejections,
        max(CASE limit_unit WHEN 'fraction' THEN round(limit_used * 100, 6) WHEN 'percent' THEN limit_used END)
            FILTER (WHERE kind = 'rate_limit') AS rate_limit_peak_percent,
        count(DISTINCT request_id) FILTER (WHERE requests = 1) AS named_requests,
        sum(requests) FILTER (WHERE request_id IS NULL) AS nameless_requests,
        count(requests) AS request_rows,
        count(DISTINCT call_id || '#' || CAST(coalesce(call_occurrence, 1) AS VARCHAR)) FILTER (WHERE decision = 'deny')
            AS denied_ids,
        count(*) FILTER (WHERE decision = 'deny' AND call_id IS NULL) AS denied_records
    FROM events
    WHERE is_shadow IS NOT TRUE
    GROUP BY run_id
)
SELECT
    run_id, messages, errors, warnings, retries, compactions, opaque_records, auth_expired, file_changes,
    turns_started, rate_limit_samples, rate_limit_rows - rate_limit_samples AS rate_limit_markers,
    rate_limit_rejections, rate_limit_peak_percent,
    CASE
        WHEN request_rows = 0 THEN NULL
        WHEN nameless_requests IS NULL THEN named_requests
        ELSE named_requests + CAST(nameless_requests AS BIGINT)
    END AS requests,
    denied_ids + denied_records AS denied_calls
FROM counts;
