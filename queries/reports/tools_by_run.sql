-- Tools offered and used by run
-- row: run × tool
-- from: tools_offered
-- unknown: offered NULL = the stream does not say what it offers; withheld NULL = nor what it withholds
-- not counted: nothing
-- by: run
-- params: since, until, wire, run
-- picture: none
CREATE OR REPLACE VIEW report_tools_by_run AS
SELECT run_id, wire, adapter, tool, offered, withheld, withheld_reason, calls, denied_calls, completeness
FROM tools_offered
ORDER BY run_id, tool;
