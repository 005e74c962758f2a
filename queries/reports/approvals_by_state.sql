-- Approvals by state
-- row: state × who answered
-- from: approvals
-- unknown: answered_by NULL = nobody answered
-- not counted: calls that a policy decided alone
-- by: state
-- params: since, until, wire, run
-- picture: bar state calls
CREATE OR REPLACE VIEW report_approvals_by_state AS
SELECT
    state, answered_by, count(*) AS calls, count(DISTINCT run_id) AS runs,
    median(waited_ms) AS median_waited_ms,
    quantile_cont(waited_ms, 0.90) AS p90_waited_ms,
    quantile_cont(waited_ms, 0.95) AS p95_waited_ms,
    quantile_cont(waited_ms, 0.99) AS p99_waited_ms,
    bool_and(is_exact) AS is_exact
FROM approvals
GROUP BY state, answered_by
ORDER BY calls DESC, state, answered_by;
