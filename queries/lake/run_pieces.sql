-- Pieces of runs
-- row: what of one run stands in one source, and which run of the lake it is
-- from: sources; the filters only_wire, only_run, since, until (DuckDB variables, unset = no filter) apply here, once
-- unknown: first_seq and last_seq NULL = the wire numbers nothing; first_ts NULL = no record of it has a time
-- not counted: sources that are skipped, or copies of another source; is_copy marks a run read twice
--   The same run id in several pieces: the same content is one run (all but one piece are copies); sequence numbers
--   that do not overlap are one run in pieces; pieces that overlap are different runs, and the later by first time
--   (then by running total, then by content) is named '#2', '#3' ('##2' where the wire itself calls a run so); pieces
--   that begin with the same record (first_key) are of one process, the shorter a part of the longer. A wire
--   that spreads one run over sources says is_shared: never split, and never the '#2'. is_beginning: lines before the
--   first that names a run; they belong to that run. is_cut: it stands last in a source that ends inside a line.
CREATE OR REPLACE VIEW run_pieces AS
WITH every_piece AS (
    SELECT
        wire, source_id, p.run_id AS wire_run_id, p.first_line AS first_line, p.last_line AS last_line,
        p.lines AS lines, p.events AS events, p.first_seq AS first_seq, p.last_seq AS last_seq,
        p.seq_breaks AS seq_breaks, p.first_ts AS first_ts, p.last_ts AS last_ts,
        p.first_key AS first_key, p.running_total AS running_total, p.digest AS digest,
        p.is_shared IS TRUE AS is_shared, began_at,
        pending_bytes > 0 AS has_tail,
        p.run_id = wire || '-' || source_id AS is_nameless
    FROM (
        SELECT wire, source_id, began_at, pending_bytes, unnest(runs) AS p
        FROM sources
        WHERE status NOT IN ('skipped', 'copy')
    )
), tails AS (
    SELECT source_id, max(last_line) AS last_line FROM every_piece WHERE has_tail GROUP BY source_id
), first_named AS (
    SELECT e.source_id, arg_min(e.wire_run_id, e.first_line) AS wire_run_id
    FROM every_piece AS e
    SEMI JOIN (SELECT source_id FROM every_piece WHERE is_nameless) AS n ON n.source_id = e.source_id
    WHERE NOT e.is_nameless
    GROUP BY e.source_id
), pieces AS (
    SELECT e.* FROM every_piece AS e
    ANTI JOIN first_named AS f ON f.source_id = e.source_id AND e.is_nameless
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
), processes AS (
    SELECT
        *, coalesce(CAST(first_key AS VARCHAR), digest) AS process,
        CASE WHEN first_key IS NULL THEN source_id ELSE '' END AS process_source,
        CASE
            WHEN first_key IS NULL THEN first_ts
            ELSE min(first_ts) OVER (PARTITION BY wire, wire_run_id, is_shared, is_copy, island, first_key)
        END AS process_ts
    FROM islands
), lanes AS (
    SELECT *, CASE WHEN is_shared OR is_copy THEN 0 ELSE dense_rank() OVER (
        PARTITION BY wire, wire_run_id, is_shared, is_copy, island
        ORDER BY process_ts NULLS LAST, running_total NULLS LAST, process, process_source
    ) END AS lane
    FROM processes
), lane_starts AS (
    SELECT
        *,
        min(first_ts) OVER (PARTITION BY wire, wire_run_id, is_copy, lane) AS lane_ts,
        min(running_total) OVER (PARTITION BY wire, wire_run_id, is_copy, lane) AS lane_total,
        min(digest) OVER (PARTITION BY wire, wire_run_id, is_copy, lane) AS lane_digest
    FROM lanes
), numbered AS (
    SELECT *, dense_rank() OVER (
        PARTITION BY wire_run_id, is_copy
        ORDER BY
            CASE WHEN is_shared THEN 0 ELSE 1 END, lane_ts NULLS LAST, lane_total NULLS LAST, lane_digest, wire, lane
    ) AS number
    FROM lane_starts
), placed AS (
    SELECT
        wire, source_id, wire_run_id, first_line, last_line, lines, events, first_seq, last_seq, seq_breaks, first_ts,
        last_ts, digest, is_shared, began_at, has_tail, is_nameless, 1 AS number, false AS is_copy,
        first_ts AS run_first_ts, 0 AS piece
    FROM pieces ANTI JOIN several USING (wire_run_id)
    UNION ALL
    SELECT
        wire, source_id, wire_run_id, first_line, last_line, lines, events, first_seq, last_seq, seq_breaks, first_ts,
        last_ts, digest, is_shared, began_at, has_tail, is_nameless, number, is_copy, lane_ts AS run_first_ts,
        CASE WHEN is_copy THEN NULL ELSE row_number() OVER (
            PARTITION BY wire_run_id, is_copy, number ORDER BY first_seq NULLS LAST, first_ts NULLS LAST, lines,
            digest, source_id
        ) - 1 END AS piece
    FROM numbered
), candidates AS (
    SELECT *, CASE WHEN number > 1 THEN wire_run_id || '#' || CAST(number AS VARCHAR) END AS candidate FROM placed
), taken AS (
    SELECT DISTINCT wire_run_id AS candidate, true AS is_taken FROM pieces WHERE wire_run_id LIKE '%#%'
), named AS (
    SELECT
        c.*, false AS is_beginning,
        CASE
            WHEN c.number = 1 THEN c.wire_run_id
            WHEN t.is_taken THEN c.wire_run_id || '##' || CAST(c.number AS VARCHAR)
            ELSE c.candidate
        END AS run_id
    FROM candidates AS c LEFT JOIN taken AS t ON t.candidate = c.candidate
), all_named AS (
    SELECT
        run_id, wire, source_id, wire_run_id, piece, is_copy, is_shared, is_beginning, first_line, last_line, lines,
        events, first_seq, last_seq, seq_breaks, first_ts, last_ts, digest, began_at, run_first_ts
    FROM named
    UNION ALL
    SELECT
        n.run_id, e.wire, e.source_id, e.wire_run_id, n.piece, n.is_copy, e.is_shared, true AS is_beginning,
        e.first_line, e.last_line, e.lines, e.events, e.first_seq, e.last_seq, e.seq_breaks, e.first_ts, e.last_ts,
        e.digest, e.began_at, n.run_first_ts
    FROM every_piece AS e
    JOIN first_named AS f ON f.source_id = e.source_id
    JOIN named AS n ON n.source_id = f.source_id AND n.wire_run_id = f.wire_run_id
    WHERE e.is_nameless
)
SELECT
    p.run_id, p.wire, p.source_id, p.wire_run_id, p.piece, p.is_copy, p.is_shared, p.is_beginning, p.first_line,
    p.last_line, p.lines, p.events, p.first_seq, p.last_seq, p.seq_breaks, p.first_ts, p.last_ts, p.digest,
    p.began_at, t.source_id IS NOT NULL AS is_cut,
    (getvariable('only_wire') IS NULL OR p.wire = getvariable('only_wire'))
        AND (getvariable('only_run') IS NULL OR p.run_id = getvariable('only_run'))
        AND (getvariable('since') IS NULL
            OR coalesce(p.run_first_ts >= CAST(getvariable('since') AS TIMESTAMPTZ), false))
        AND (getvariable('until') IS NULL
            OR coalesce(p.run_first_ts < CAST(getvariable('until') AS TIMESTAMPTZ), false)) AS is_selected
FROM all_named AS p
LEFT JOIN tails AS t ON t.source_id = p.source_id AND t.last_line = p.last_line;
