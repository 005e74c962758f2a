-- Refusals as stored
-- row: one refused record, or one refused file (line NULL), as it is stored
-- from: the refusal files of the pinned version of the lake (open.sql sets refusal_files)
-- unknown: NULL = the record did not say
-- not counted: nothing
CREATE OR REPLACE VIEW stored_refusals AS
SELECT
    wire, source_id, path, line, part, byte_offset, bytes, reason, detail, run_id, seq, raw_sha256, raw,
    redactions
FROM read_parquet(getvariable('refusal_files'), hive_partitioning = true);
