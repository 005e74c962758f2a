-- Record types
-- row: wire × version of the agent × type of record × kind it was read as
-- from: events (the first fact of each line, and unknown parts of a line), refusals, run_states for the version
-- unknown: version NULL = the run does not say; a run that spans versions stands under the one it began with
-- not counted: lines that are not JSON, or no record of the wire at all: see refusals. Copies count as often as they
--   were read
--   is_unknown: nobody knows the type here: the record is kept whole (kind opaque), or refused (kind refused).
CREATE OR REPLACE VIEW record_types AS
WITH read AS (
    SELECT run_id, wire, event, kind, status, count(*) AS records, min(ts) AS first_at, max(ts) AS last_at
    FROM (
        SELECT run_id, wire, event, kind, ts, CASE WHEN kind = 'opaque' THEN status END AS status
        FROM events
        WHERE part = 0 OR kind = 'opaque'
    )
    GROUP BY run_id, wire, event, kind, status
    UNION ALL
    SELECT run_id, wire, detail, 'refused', NULL, count(*), NULL, NULL
    FROM refusals
    WHERE reason = 'unknown_event'
    GROUP BY run_id, wire, detail
)
SELECT
    r.wire, s.agent_version AS version, r.event, r.kind, r.status AS vendor_type,
    r.kind IN ('opaque', 'refused') AS is_unknown, CAST(sum(r.records) AS BIGINT) AS records,
    count(DISTINCT r.run_id) AS runs, min(r.first_at) AS first_at, max(r.last_at) AS last_at
FROM read AS r LEFT JOIN run_states AS s ON s.run_id = r.run_id
GROUP BY r.wire, s.agent_version, r.event, r.kind, r.status;
