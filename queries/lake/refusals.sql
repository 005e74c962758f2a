-- Refusals
-- row: one refused record, or one refused file (line NULL)
-- from: stored_refusals, with the run each belongs to: the one the line itself names, else the only run of its source
-- unknown: run_id NULL = no run can be known
-- not counted: refusals of second copies of a run, and of runs outside the filters
CREATE OR REPLACE VIEW refusals AS
WITH pieces AS (
    SELECT source_id, wire_run_id, run_id, piece, is_beginning, is_copy OR NOT is_selected AS is_dropped
    FROM run_pieces
), only_run AS (
    SELECT
        source_id, count(*) AS pieces, min(wire_run_id) AS wire_run_id, bool_and(is_dropped) AS is_dropped
    FROM pieces
    WHERE NOT is_beginning
    GROUP BY source_id
)
SELECT
    r.wire, r.source_id, r.path, r.line, r.part, r.byte_offset, r.bytes, r.reason, r.detail, CASE WHEN p.run_id IS
    NOT NULL THEN p.run_id ELSE r.run_id END AS run_id, r.seq, r.raw_sha256, r.raw, r.redactions,
    CASE WHEN r.run_id IS NOT NULL THEN 'line' WHEN p.run_id IS NOT NULL THEN 'source' END AS run_id_origin,
    p.piece * 1000000000000000 + r.line * 1000000 + r.part AS position
FROM stored_refusals AS r
LEFT JOIN only_run AS o ON o.source_id = r.source_id
LEFT JOIN pieces AS p
    ON p.source_id = r.source_id
    AND p.wire_run_id = CASE
        WHEN r.run_id IS NOT NULL THEN r.run_id
        WHEN o.pieces = 1 THEN o.wire_run_id
    END
WHERE (getvariable('only_wire') IS NULL OR r.wire = getvariable('only_wire'))
    AND CASE
        WHEN p.run_id IS NOT NULL THEN NOT p.is_dropped
        WHEN getvariable('only_run') IS NOT NULL THEN coalesce(r.run_id = getvariable('only_run'), false)
        ELSE o.is_dropped IS NOT TRUE
    END;
