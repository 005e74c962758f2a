-- Denials
-- row: tool × evidence × decider × reason
-- from: denials
-- unknown: NULL = no record says it; see coverage for runs that cannot speak of decisions
-- not counted: records: denied_calls are distinct calls. A call denied twice may stand in two rows
-- by: tool, reason, decided_by, run
-- params: since, until, wire, run
-- picture: bar tool denied_calls
CREATE OR REPLACE VIEW report_denials AS
SELECT tool, evidence, decided_by, reason, denied_calls, records, runs, is_lower_bound
FROM denials
ORDER BY denied_calls DESC, tool, evidence, decided_by, reason;
