-- Coverage
-- row: wire × question, and how many runs can answer it
-- from: coverage
-- unknown: none: this is where unknown is counted
-- not counted: runs with is_counted false
-- by: type
-- params: since, until, wire, run
-- picture: bar question answered wire
CREATE OR REPLACE VIEW report_coverage AS
SELECT wire, question, runs, answered, exact, silent
FROM coverage
ORDER BY wire, place;
