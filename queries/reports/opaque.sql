-- Opaque records
-- row: one record that the harness, or its wire here, does not know
-- from: opaque_records
-- unknown: NULL = the harness did not say
-- not counted: nothing
-- by: none
-- params: since, until, wire, run
-- picture: none
CREATE OR REPLACE VIEW report_opaque AS
SELECT run_id, wire, event, vendor_type, vendor_subtype, digest, source_line, path, line, ts
FROM opaque_records
ORDER BY run_id, position;
