-- Usage by effort
-- row: wire × model × effort × speed
-- from: effort
-- unknown: effort, speed, model NULL = the record did not say
-- not counted: runs with is_counted false, side calls
-- by: none
-- params: since, until, wire, run
-- picture: bar effort total_tokens
CREATE OR REPLACE VIEW report_effort AS
SELECT
    wire, model, effort, speed, runs, usage_rows, input_tokens, cache_read_tokens, cache_write_tokens, output_tokens,
    reasoning_tokens, total_tokens, is_lower_bound
FROM effort
WHERE NOT is_side_call
ORDER BY total_tokens DESC NULLS LAST, wire, model, effort, speed;
