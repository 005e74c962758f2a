-- Lines in and bytes in are lines and bytes kept
-- row: one place of a source where a line's bytes do not lead to where the next line begins; there must be none
-- from: sources, stored_events, stored_refusals
-- unknown: bytes_kept NULL = a secret was replaced, so the length is what lies between the offsets of two lines
-- not counted: skipped sources and copies; of a document the text around its events where it holds a redaction
--   From one line to the next the number goes up by one, and the offset by the line's bytes and its newline; blank
--   lines stand between, or in a document the text of its skeleton. A source begins behind its byte order mark and ends
--   at bytes_read, so nothing is left over. line is where it fails, next_line the next one that is there.
CREATE OR REPLACE VIEW check_bytes_of_sources AS
WITH read AS (
    SELECT
        source_id, path, lines - CASE WHEN pending_bytes > 0 THEN 1 ELSE 0 END AS whole_lines, bytes_read, has_bom,
        ends_without_newline, blanks, skeleton
    FROM sources
    WHERE bytes_read IS NOT NULL AND status <> 'skipped' AND copy_of IS NULL
), blank_lines AS (
    SELECT source_id, b.line AS line, octet_length(b.text) AS bytes
    FROM (SELECT source_id, unnest(blanks) AS b FROM read)
), blank_runs AS (
    SELECT source_id, max(line) + 1 AS next_line, count(*) AS lines, CAST(sum(bytes + 1) AS BIGINT) AS bytes
    FROM (
        SELECT *, line - row_number() OVER (PARTITION BY source_id ORDER BY line, bytes) AS island FROM blank_lines
    )
    GROUP BY source_id, island
), gaps AS (
    SELECT
        source_id, row_number() OVER (PARTITION BY source_id ORDER BY g.place) AS next_line,
        CASE WHEN g.text NOT LIKE '%[REDACTED:%' THEN octet_length(encode(g.text)) END AS bytes
    FROM (
        SELECT
            source_id,
            unnest(list_transform(string_split(skeleton, chr(0)), lambda t, i: {'place': i, 'text': t})) AS g
        FROM read
        WHERE skeleton IS NOT NULL
    )
), refused_whole AS (
    SELECT source_id, CAST(sum(bytes) AS BIGINT) AS bytes FROM stored_refusals WHERE line IS NULL GROUP BY source_id
), kept AS (
    SELECT
        source_id, line, byte_offset,
        CASE
            WHEN redactions > 0 THEN NULL
            WHEN payload IS NULL THEN octet_length(raw)
            ELSE octet_length(encode(payload))
        END AS bytes,
        false AS is_end
    FROM stored_events
    WHERE payload IS NOT NULL OR raw IS NOT NULL
    UNION ALL
    SELECT source_id, line, byte_offset, bytes, false FROM stored_refusals WHERE line IS NOT NULL
    UNION ALL
    SELECT
        source_id, 0, CASE WHEN has_bom THEN 3 ELSE 0 END - CASE WHEN skeleton IS NULL THEN 1 ELSE 0 END, 0, false
    FROM read
    UNION ALL
    SELECT
        r.source_id, r.whole_lines + 1,
        r.bytes_read + CASE WHEN r.ends_without_newline THEN 1 ELSE 0 END - coalesce(w.bytes, 0), NULL, true
    FROM read AS r
    LEFT JOIN refused_whole AS w ON w.source_id = r.source_id
), steps AS (
    SELECT
        source_id, line, byte_offset, bytes, is_end,
        lead(line) OVER (PARTITION BY source_id ORDER BY line, byte_offset, is_end, bytes) AS next_line,
        lead(byte_offset) OVER (PARTITION BY source_id ORDER BY line, byte_offset, is_end, bytes) AS next_offset,
        lead(is_end) OVER (PARTITION BY source_id ORDER BY line, byte_offset, is_end, bytes) AS is_last
    FROM kept
), measured AS (
    SELECT
        s.source_id, s.line, s.next_line, s.is_end, s.is_last, s.bytes,
        s.next_offset - s.byte_offset - CASE
            WHEN g.next_line IS NOT NULL THEN g.bytes
            WHEN s.next_line = s.line THEN 0
            ELSE 1 + coalesce(b.bytes, 0)
        END AS bytes_between,
        s.line + 1 + coalesce(b.lines, 0) AS expected_line
    FROM steps AS s
    LEFT JOIN blank_runs AS b ON b.source_id = s.source_id AND b.next_line = s.next_line
    LEFT JOIN gaps AS g ON g.source_id = s.source_id AND g.next_line = s.next_line
), judged AS (
    SELECT
        *,
        CASE
            WHEN is_end <> (next_line IS NULL) THEN 'a line behind the end that the ledger says'
            WHEN next_line > expected_line THEN 'a line is missing'
            WHEN next_line < expected_line AND next_line <> line THEN 'a line stands twice'
            WHEN bytes_between > bytes THEN 'bytes are missing'
            WHEN bytes_between < bytes THEN 'bytes are too many'
            WHEN bytes IS NULL AND bytes_between < 1 THEN 'bytes are too many'
        END AS fault
    FROM measured
)
SELECT
    j.source_id, r.path,
    CASE WHEN j.fault = 'a line is missing' OR (j.line = 0 AND NOT j.is_last) THEN j.line + 1
        WHEN j.line > 0 THEN j.line
    END AS line,
    CASE WHEN NOT j.is_last THEN j.next_line END AS next_line, j.fault, j.bytes AS bytes_kept, j.bytes_between
FROM judged AS j
LEFT JOIN read AS r ON r.source_id = j.source_id
WHERE j.fault IS NOT NULL;
