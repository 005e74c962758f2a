-- Expired credentials
-- row: one record that says the credential expired
-- from: auth_expired
-- unknown: NULL = the record did not say
-- not counted: nothing; weak evidence
-- by: none
-- params: since, until, wire, run
-- picture: none
CREATE OR REPLACE VIEW report_auth_expired AS
SELECT run_id, wire, ts, credential_source, detail, source_line, line
FROM auth_expired
ORDER BY run_id, position;
