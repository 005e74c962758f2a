-- Refused lines
-- row: wire × reason
-- from: refusals_by_reason
-- unknown: first_line NULL = whole files were refused
-- not counted: unterminated last lines: they are pending
-- by: reason, source, run
-- params: since, until, wire, run
-- picture: bar reason refusals wire
CREATE OR REPLACE VIEW report_refusals AS
SELECT wire, reason, refusals, sources, runs, bytes, first_path, first_line, first_detail
FROM refusals_by_reason
ORDER BY refusals DESC, wire, reason;
