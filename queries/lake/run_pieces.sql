-- Pieces of runs
-- row: what of one run stands in one source, and which run of the lake it is
-- from: sources; the filters only_wire, only_run, since, until (DuckDB variables, unset = no filter) apply here, once
-- unknown: first_seq and last_seq NULL = the wire numbers nothing; first_ts NULL = no record of it has a time
-- not counted: sources that are skipped, or copies of another source; is_copy marks a run read twice
--   The same run id in several pieces: the same content is one run (all but one piece are copies); sequence numbers
--   that do not overlap are one run in pieces; pieces that overlap are different runs, and the later by first time
--   (then by content) is named '#2', '#3' ('##2' where the wire itself calls a run so). A wire that spreads one run
--   over sources says is_shared: never split.
CREATE OR REPLACE VIEW run_pieces AS
WITH pieces AS (
    SELECT
        wire, source_id, p.run_id AS wire_run_id, p.first_line AS first_line, p.last_line AS last_line,
        p.lines AS lines, p.events AS events, p.first_seq AS first_seq, p.last_seq AS last_seq,
        p.seq_breaks AS seq_breaks, p.first_ts AS first_ts, p.last_ts AS last_ts, p.digest AS digest,
        p.is_shared IS TRUE AS is_shared
    FROM (SELECT wire, source_id, unnest(runs) AS p FROM sources WHERE status NOT IN ('skipped', 'copy'))
), several AS (
    SELECT wire_run_id FROM pieces GROUP BY wire_run_id HAVING count(*) > 1
), readings AS (
    SELECT
        *,
        digest IS NOT NULL AND NOT is_shared AND row_number() OVER (
            PARTITION BY wire, wire_run_id, digest, first_seq, last_seq, is_shared ORDER BY source_id
        ) > 1 AS is_copy,
        CASE WHEN first_seq IS NULL OR last_seq IS NULL THEN -1 ELSE first_seq END AS span_start,
        CASE WHEN first_seq IS NULL OR last_seq IS NULL THEN 9223372036854775807 ELSE last_seq END AS span_end
    FROM pieces SEMI JOIN several USING (wire_run_id)
), spans AS (
    SELECT *, max(span_end) OVER (
        PARTITION BY wire, wire_run_id, is_shared, is_copy ORDER BY span_start, span_end, source_id
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS reached
    FROM readings
), islands AS (
    SELECT *, count(*) FILTER (WHERE reached < span_start) OVER (
        PARTITION BY wire, wire_run_id, is_shared, is_copy ORDER BY span_start, span_end, source_id
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS island
    FROM spans
), lanes AS (
    SELECT *, CASE WHEN is_shared OR is_copy THEN 0 ELSE row_number() OVER (
        PARTITION BY wire, wire_run_id, is_shared, is_copy, island ORDER BY first_ts NULLS LAST, digest, source_id
    ) END AS lane
    FROM islands
), lane_starts AS (
    SELECT
        *,
        min(first_ts) OVER (PARTITION BY wire, wire_run_id, is_copy, lane) AS lane_ts,
        min(digest) OVER (PARTITION BY wire, wire_run_id, is_copy, lane) AS lane_digest
    FROM lanes
), numbered AS (
    SELECT *, dense_rank() OVER (
        PARTITION BY wire_run_id, is_copy ORDER BY lane_ts NULLS LAST, lane_digest, wire, lane
    ) AS number
    FROM lane_starts
), every_piece AS (
    SELECT *, 0 AS piece, 1 AS number, false AS is_copy, first_ts AS run_first_ts
    FROM pieces ANTI JOIN several USING (wire_run_id)
    UNION ALL BY NAME
    SELECT
        wire, source_id, wire_run_id, first_line, last_line, lines, events, first_seq, last_seq, seq_breaks, first_ts,
        last_ts, digest, is_shared, number, is_copy, lane_ts AS run_first_ts,
        CASE WHEN is_copy THEN NULL ELSE row_number() OVER (
            PARTITION BY wire_run_id, is_copy, number ORDER BY first_seq NULLS LAST, first_ts NULLS LAST, digest,
            source_id
        ) - 1 END AS piece
    FROM numbered
), candidates AS (
    SELECT *, CASE WHEN number > 1 THEN wire_run_id || '#' || CAST(number AS VARCHAR) END AS candidate FROM every_piece
), taken AS (
    SELECT DISTINCT wire_run_id AS candidate, true AS is_taken FROM pieces WHERE wire_run_id LIKE '%#%'
), named AS (
    SELECT
        c.*,
        CASE
            WHEN c.number = 1 THEN c.wire_run_id
            WHEN t.is_taken THEN c.wire_run_id || '##' || CAST(c.number AS VARCHAR)
            ELSE c.candidate
        END AS run_id
    FROM candidates AS c LEFT JOIN taken AS t ON t.candidate = c.candidate
)
SELECT
    run_id, wire, source_id, wire_run_id, piece, is_copy, is_shared, first_line, last_line, lines, events, first_seq,
    last_seq, seq_breaks, first_ts, last_ts, digest,
    (getvariable('only_wire') IS NULL OR wire = getvariable('only_wire'))
        AND (getvariable('only_run') IS NULL OR run_id = getvariable('only_run'))
        AND (getvariable('since') IS NULL
            OR coalesce(run_first_ts >= CAST(getvariable('since') AS TIMESTAMPTZ), false))
        AND (getvariable('until') IS NULL
            OR coalesce(run_first_ts < CAST(getvariable('until') AS TIMESTAMPTZ), false)) AS is_selected
FROM named;
