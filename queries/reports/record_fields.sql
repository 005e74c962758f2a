-- Fields of records
-- row: wire × version of the agent × type of record × field
-- from: record_fields
-- unknown: version NULL = the run does not say
-- not counted: wires of harnesses; it reads every payload, so it takes its time
-- by: none
-- params: since, until, wire, run
-- picture: none
CREATE OR REPLACE VIEW report_record_fields AS
SELECT wire, version, event, field, records, runs
FROM record_fields
ORDER BY wire, event, field, version;
