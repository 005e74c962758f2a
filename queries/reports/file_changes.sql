-- File changes
-- row: one file of one run
-- from: file_changes
-- unknown: path NULL = the record names none
-- not counted: whether the change succeeded, where no call is named
-- by: none
-- params: since, until, wire, run
-- picture: none
CREATE OR REPLACE VIEW report_file_changes AS
SELECT
    run_id, wire, path, count(*) AS records, count(*) FILTER (WHERE call_state = 'finished') AS of_finished_calls,
    count(*) FILTER (WHERE call_state = 'denied') AS of_denied_calls, min(ts) AS first_at, max(ts) AS last_at
FROM file_changes
GROUP BY run_id, wire, path
ORDER BY records DESC, run_id, path;
