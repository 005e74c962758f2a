-- Usage by effort
-- row: wire × model × effort × speed, and whether it is a side call
-- from: usage
-- unknown: effort, speed, model NULL = the record did not say; a sum is NULL where no row says the figure
-- not counted: runs with is_counted false
CREATE OR REPLACE VIEW effort AS
WITH sums AS (
    SELECT
        wire, model, effort, speed, is_side_call, count(DISTINCT run_id) AS runs, count(*) AS usage_rows,
        sum(input_tokens) AS input_tokens, sum(uncached_input_tokens) AS uncached_input_tokens,
        sum(cache_read_tokens) AS cache_read_tokens, sum(cache_write_tokens) AS cache_write_tokens,
        sum(output_tokens) AS output_tokens, sum(reasoning_tokens) AS reasoning_tokens,
        bool_or(is_lower_bound) AS is_lower_bound
    FROM usage
    WHERE is_counted AND usage_source <> 'cost'
    GROUP BY wire, model, effort, speed, is_side_call
)
SELECT
    wire, model, effort, speed, is_side_call, runs, usage_rows, CAST(input_tokens AS BIGINT) AS input_tokens,
    CAST(uncached_input_tokens AS BIGINT) AS uncached_input_tokens,
    CAST(cache_read_tokens AS BIGINT) AS cache_read_tokens, CAST(cache_write_tokens AS BIGINT) AS cache_write_tokens,
    CAST(output_tokens AS BIGINT) AS output_tokens, CAST(reasoning_tokens AS BIGINT) AS reasoning_tokens,
    CAST(input_tokens AS BIGINT) + CAST(output_tokens AS BIGINT) AS total_tokens, is_lower_bound
FROM sums;
