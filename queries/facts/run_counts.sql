-- What happened in a run, counted
-- row: one run that has events
-- from: events
-- unknown: requests NULL = no record says for how many model requests it stands; peak NULL = no sample has a value
-- not counted: shadows. denied_calls are distinct calls; a denial that names no call counts as one. A request that
--   several rows show counts once. Three passes: distinct counts beside others cost four times as much.
CREATE OR REPLACE VIEW run_counts AS
WITH kinds AS (
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
        count(*) FILTER (WHERE kind = 'rate_limit') AS rate_limit_rows,
        count(*) FILTER (
            WHERE kind = 'rate_limit' AND (
                limit_id IS NOT NULL OR limit_used IS NOT NULL OR limit_status IS NOT NULL
                OR limit_resets_at IS NOT NULL
            )
        ) AS rate_limit_samples,
        count(*) FILTER (WHERE kind = 'rate_limit' AND limit_status LIKE '%reject%') AS rate_limit_rejections,
        count(limit_status) FILTER (WHERE kind = 'rate_limit') AS rate_limit_statuses,
        max(CASE limit_unit WHEN 'fraction' THEN round(limit_used * 100, 6) WHEN 'percent' THEN limit_used END)
            AS rate_limit_peak_percent,
        count(*) FILTER (WHERE kind = 'system' AND part = 0) AS other_lines
    FROM events
    WHERE is_shadow IS NOT TRUE AND (
        kind IN (
            'message', 'error', 'warning', 'retry', 'compaction', 'opaque', 'auth.expired', 'file.changed', 'rate_limit'
        ) OR (kind = 'system' AND event IN ('plain_text', 'voice_events'))
    )
    GROUP BY run_id
), answered AS (
    SELECT run_id, request_id, sum(requests) AS stated, max(requests) AS most
    FROM events
    WHERE requests IS NOT NULL AND is_shadow IS NOT TRUE
    GROUP BY run_id, request_id
), requested AS (
    SELECT run_id, sum(CASE WHEN request_id IS NULL THEN stated WHEN most > 0 THEN 1 ELSE 0 END) AS requests
    FROM answered
    GROUP BY run_id
), denials AS (
    SELECT run_id, call_id, call_occurrence, CASE WHEN call_id IS NULL THEN position END AS lone
    FROM events
    WHERE decision = 'deny' AND is_shadow IS NOT TRUE
    GROUP BY run_id, call_id, call_occurrence, CASE WHEN call_id IS NULL THEN position END
), denied AS (
    SELECT run_id, count(*) AS denied_calls FROM denials GROUP BY run_id
), every_run AS (
    SELECT run_id FROM run_pieces WHERE is_selected AND NOT is_copy GROUP BY run_id
)
SELECT
    e.run_id, coalesce(k.messages, 0) AS messages, coalesce(k.errors, 0) AS errors,
    coalesce(k.warnings, 0) AS warnings, coalesce(k.retries, 0) AS retries, coalesce(k.compactions, 0) AS compactions,
    coalesce(k.opaque_records, 0) AS opaque_records, coalesce(k.auth_expired, 0) AS auth_expired,
    coalesce(k.file_changes, 0) AS file_changes, coalesce(k.rate_limit_samples, 0) AS rate_limit_samples,
    coalesce(k.rate_limit_rows - k.rate_limit_samples, 0) AS rate_limit_markers,
    CASE
        WHEN coalesce(k.rate_limit_samples, 0) = 0 THEN 0
        WHEN k.rate_limit_statuses > 0 THEN k.rate_limit_rejections
    END AS rate_limit_rejections, k.rate_limit_peak_percent,
    coalesce(k.other_lines, 0) AS other_lines,
    CAST(r.requests AS BIGINT) AS requests, coalesce(d.denied_calls, 0) AS denied_calls
FROM every_run AS e
LEFT JOIN kinds AS k ON k.run_id = e.run_id
LEFT JOIN requested AS r ON r.run_id = e.run_id
LEFT JOIN denied AS d ON d.run_id = e.run_id;
