-- Context budget
-- row: one run that builds contexts
-- from: context_budget
-- unknown: NULL = the run's wire does not say
-- not counted: single contexts: see context_budget
-- by: none
-- params: since, until, wire, run
-- picture: none
CREATE OR REPLACE VIEW report_context AS
WITH sums AS (
    SELECT
        run_id, wire, count(*) FILTER (WHERE kind = 'context') AS contexts,
        count(*) FILTER (WHERE kind = 'compaction') AS compactions, max(token_budget) AS token_budget,
        max(estimated_tokens) AS peak_estimated_tokens,
        median(CAST(estimated_tokens AS DOUBLE)) AS median_estimated_tokens,
        quantile_cont(CAST(estimated_tokens AS DOUBLE), 0.90) AS p90_estimated_tokens,
        quantile_cont(CAST(estimated_tokens AS DOUBLE), 0.95) AS p95_estimated_tokens,
        quantile_cont(CAST(estimated_tokens AS DOUBLE), 0.99) AS p99_estimated_tokens,
        max(CAST(estimated_tokens AS DOUBLE) / CAST(nullif(token_budget, 0) AS DOUBLE)) * 100 AS peak_used_percent,
        sum(tokens_before - tokens_after) AS tokens_compacted_away
    FROM context_budget
    GROUP BY run_id, wire
)
SELECT
    run_id, wire, contexts, compactions, token_budget, peak_estimated_tokens, median_estimated_tokens,
    p90_estimated_tokens, p95_estimated_tokens, p99_estimated_tokens, peak_used_percent,
    CAST(tokens_compacted_away AS BIGINT) AS tokens_compacted_away
FROM sums
ORDER BY peak_used_percent DESC NULLS LAST, run_id;
