-- What the records of a call say
-- row: one call: a call id of a run and which opening of it (call_occurrence), or one call record without an id (lone)
-- from: call_groups
-- unknown: NULL = no record said it
-- not counted: shadows, results and decisions of calls that nobody requested
CREATE OR REPLACE VIEW call_records AS
FROM call_groups WHERE opened IS NOT NULL;
