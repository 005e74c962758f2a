-- Sources
-- row: one ingested file, in its newest revision
-- from: the source files of the pinned version of the lake (open.sql sets source_files)
-- unknown: NULL = not measured; the counters of a skipped file are NULL
-- not counted: older revisions of a file that grew or was rewritten
CREATE OR REPLACE VIEW sources AS
WITH stored AS (
    FROM read_parquet(getvariable('source_files'), hive_partitioning = true)
), newest AS (
    SELECT source_id, max(revision) AS revision FROM stored GROUP BY source_id
)
SELECT
    wire, source_id, revision, ingest_id, host, path, shape, status, status_reason, copy_of, size_bytes, mtime_ns,
    inode, compression, bytes_read, digest, lines, event_lines, events, refused_lines, refusals, blank_lines,
    pending_bytes, tail, redactions, is_redacted, has_bom, ends_without_newline, blanks, skeleton, runs,
    resume_state, began_at, first_seen, last_seen, runlake_version
FROM stored SEMI JOIN newest USING (source_id, revision);
