-- Record types
-- row: wire × version of the agent × type of record × kind it was read as
-- from: record_types
-- unknown: version NULL = the run does not say
-- not counted: lines that are not JSON: see refusals
-- by: none
-- params: since, until, wire, run
-- picture: none
CREATE OR REPLACE VIEW report_record_types AS
SELECT wire, version, event, kind, vendor_type, is_unknown, records, runs, first_at, last_at
FROM record_types
ORDER BY wire, is_unknown DESC, event, kind, version, vendor_type;
