-- Phases
-- row: one platonic-core run
-- from: run_phase
-- unknown: phase NULL = an event this list does not know
-- not counted: refused lines do not move the machine
-- by: none
-- params: since, until, wire, run
-- picture: none
CREATE OR REPLACE VIEW report_phases AS
SELECT
    run_id, completeness, outcome, phase, last_event, last_at, next_seq, turn_id, step, call_id, tool, reason,
    refused_lines
FROM run_phase
ORDER BY completeness, run_id;
