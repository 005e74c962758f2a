-- What happened in a run, counted
-- row: one run that has events
-- from: events, stored_events with an event_key, piece_links
-- unknown: requests NULL = no record says for how many model requests it stands; peak NULL = no sample has a value
-- not counted: shadows, and requests that have a name of their own lake-wide: usage_requests has those (requests is 0
--   where the run shows only such). A request that several rows show counts once. A record that is copied into several
--   runs (event_key) counts for the run of the oldest source.
CREATE OR REPLACE VIEW run_counts AS
WITH links AS (
    SELECT source_id, wire_run_id, run_id, place, apart, is_selected FROM piece_links
), copied AS (
    SELECT
        min(p.place) AS place, e.kind, e.part, bool_or(
            e.kind = 'rate_limit' AND (
                e.limit_id IS NOT NULL OR e.limit_used IS NOT NULL OR e.limit_status IS NOT NULL
                OR e.limit_resets_at IS NOT NULL
            )
        ) AS is_sample, max(e.limit_used) AS limit_used, min(e.limit_unit) AS limit_unit,
        min(e.limit_status) AS limit_status
    FROM stored_events AS e JOIN links AS p ON p.source_id = e.source_id AND p.wire_run_id = e.run_id
    WHERE e.event_key IS NOT NULL AND e.is_shadow IS NOT TRUE AND (
        e.kind IN (
            'message', 'error', 'warning', 'retry', 'compaction', 'opaque', 'auth.expired', 'file.changed', 'rate_limit'
        ) OR (e.kind = 'system' AND e.event IN ('plain_text', 'voice_events'))
    )
    GROUP BY e.event_key, e.part, e.kind, p.apart
), counted AS (
    SELECT
        run_id, kind, part, kind = 'rate_limit' AND (
            limit_id IS NOT NULL OR limit_used IS NOT NULL OR limit_status IS NOT NULL
            OR limit_resets_at IS NOT NULL
        ) AS is_sample, limit_used, limit_unit, limit_status
    FROM events
    WHERE event_key IS NULL AND is_shadow IS NOT TRUE AND (
        kind IN (
            'message', 'error', 'warning', 'retry', 'compaction', 'opaque', 'auth.expired', 'file.changed', 'rate_limit'
        ) OR (kind = 'system' AND event IN ('plain_text', 'voice_events'))
    )
    UNION ALL
    SELECT p.run_id, c.kind, c.part, c.is_sample, c.limit_used, c.limit_unit, c.limit_status
    FROM copied AS c JOIN links AS p ON p.place = c.place
    WHERE p.is_selected
), kinds AS (
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
        count(*) FILTER (WHERE is_sample) AS rate_limit_samples,
        count(*) FILTER (WHERE kind = 'rate_limit' AND limit_status LIKE '%reject%') AS rate_limit_rejections,
        count(limit_status) FILTER (WHERE kind = 'rate_limit') AS rate_limit_statuses,
        max(CASE limit_unit WHEN 'fraction' THEN round(limit_used * 100, 6) WHEN 'percent' THEN limit_used END)
            AS rate_limit_peak_percent,
        count(*) FILTER (WHERE kind = 'system' AND part = 0) AS other_lines
    FROM counted
    GROUP BY run_id
), answered AS (
    SELECT
        run_id, CASE WHEN usage_key IS NULL THEN request_id END AS request_id, usage_key IS NOT NULL AS is_named,
        sum(requests) AS stated, max(requests) AS most
    FROM events
    WHERE requests IS NOT NULL AND is_shadow IS NOT TRUE
    GROUP BY run_id, CASE WHEN usage_key IS NULL THEN request_id END, usage_key IS NOT NULL
), requests AS (
    SELECT
        run_id, sum(
            CASE WHEN is_named THEN 0 WHEN request_id IS NULL THEN stated WHEN most > 0 THEN 1 ELSE 0 END
        ) AS requests, bool_or(is_named) AS has_named_requests
    FROM answered
    GROUP BY run_id
), every_run AS (
    SELECT run_id FROM links WHERE is_selected GROUP BY run_id
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
    CAST(r.requests AS BIGINT) AS requests, r.has_named_requests IS TRUE AS has_named_requests
FROM every_run AS e
LEFT JOIN kinds AS k ON k.run_id = e.run_id
LEFT JOIN requests AS r ON r.run_id = e.run_id;
