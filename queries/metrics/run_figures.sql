-- Figures of runs
-- row: run × measure (cost_usd, duration_ms, input_tokens, output_tokens, total_tokens, tool_calls)
-- from: comparable_runs
-- unknown: value NULL = the record does not say
-- not counted: what comparable_runs leaves out
CREATE OR REPLACE VIEW run_figures AS
SELECT
    c.run_id, c.wire, c.model, c.variant, q.place, q.measure,
    CASE q.place
        WHEN 1 THEN c.cost_usd
        WHEN 2 THEN CAST(c.duration_ms AS DOUBLE)
        WHEN 3 THEN CAST(c.input_tokens AS DOUBLE)
        WHEN 4 THEN CAST(c.output_tokens AS DOUBLE)
        WHEN 5 THEN CAST(c.total_tokens AS DOUBLE)
        WHEN 6 THEN CAST(c.tool_calls AS DOUBLE)
    END AS value,
    CASE
        WHEN q.place = 1 THEN c.cost_usd_is_lower_bound
        WHEN q.place = 2 THEN false
        WHEN q.place = 6 THEN c.counts_are_lower_bound
        ELSE c.tokens_are_lower_bound
    END AS is_lower_bound
FROM comparable_runs AS c CROSS JOIN (
    SELECT * FROM (VALUES
        (1, 'cost_usd'), (2, 'duration_ms'), (3, 'input_tokens'), (4, 'output_tokens'), (5, 'total_tokens'),
        (6, 'tool_calls')
    ) AS v(place, measure)
) AS q;
