-- Exceptions among the pieces
-- row: one piece of a run whose events are not simply the events of its own run id
-- from: run_pieces
-- unknown: run_id is never NULL; piece is NULL where the events are dropped
-- not counted: ordinary pieces, so that this is normally empty and costs the events nothing
CREATE OR REPLACE VIEW run_exceptions AS
SELECT source_id, wire_run_id, run_id, piece, is_copy OR NOT is_selected AS is_dropped
FROM run_pieces
WHERE is_copy OR NOT is_selected OR run_id <> wire_run_id OR piece > 0;
