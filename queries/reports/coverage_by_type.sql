-- Coverage by type of record
-- row: wire × version of the agent × type of record that nobody knows here
-- from: record_types
-- unknown: version NULL = the run does not say; event of a refused record is what the refusal says of it
-- not counted: types that are known: see record_types; lines that are no records: see refusals
-- by: type
-- params: since, until, wire, run
-- picture: bar event records
CREATE OR REPLACE VIEW report_coverage_by_type AS
SELECT wire, version, event, vendor_type, kind, records, runs, first_at, last_at
FROM record_types
WHERE is_unknown
ORDER BY records DESC, wire, event, version, vendor_type;
