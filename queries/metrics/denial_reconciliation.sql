-- Denials from every side
-- row: one run that can speak of decisions
-- from: decisions, call_groups, run_states (what the end record says)
-- unknown: census_* NULL = the harness wrote no census; vendor_list NULL = no list of the vendor's
-- not counted: nothing is added across columns: they are several views of the same calls
--   decided_*: records of decisions; noticed_denials: records that show a denial (warning, notice, hook, status);
--   census_*: the harness's own count at the end; vendor_list: length of the vendor's own list.
CREATE OR REPLACE VIEW denial_reconciliation AS
WITH seen AS (
    SELECT
        run_id,
        count(*) FILTER (WHERE decision = 'allow' AND is_decided) AS decided_allow,
        count(*) FILTER (WHERE decision = 'deny' AND is_decided) AS decided_deny,
        count(*) FILTER (WHERE decision = 'replace' AND is_decided) AS decided_replace,
        count(*) FILTER (WHERE decision = 'abstain' AND is_decided) AS decided_abstain,
        count(*) FILTER (WHERE decision = 'ask' AND is_decided) AS decided_ask,
        count(*) FILTER (WHERE decision = 'deny' AND NOT is_decided AND evidence <> 'vendor_list') AS noticed_denials,
        count(*) FILTER (WHERE decision = 'deny' AND evidence = 'vendor_list') AS vendor_rows
    FROM (
        SELECT run_id, decision, evidence, evidence IN ('tool.decided', 'policy', 'approval') AS is_decided
        FROM decisions
    )
    GROUP BY run_id
), denied AS (
    SELECT run_id, count(*) AS denied_calls FROM call_groups WHERE last_denial IS NOT NULL GROUP BY run_id
), census AS (
    SELECT
        run_id, wire, adapter, completeness, is_counted, speaks_decisions,
        CAST(end_attributes->>'$.census.allowed' AS BIGINT) AS census_allowed,
        CAST(end_attributes->>'$.census.denied' AS BIGINT) AS census_denied,
        CAST(end_attributes->>'$.census.replaced' AS BIGINT) AS census_replaced,
        CAST(end_attributes->>'$.census.abstained' AS BIGINT) AS census_abstained,
        json_array_length((end_attributes->>'permission_denials')) AS vendor_list
    FROM run_states
)
SELECT
    c.run_id, c.wire, c.adapter, c.completeness, coalesce(k.denied_calls, 0) AS denied_calls,
    coalesce(s.decided_allow, 0) AS decided_allow, coalesce(s.decided_deny, 0) AS decided_deny,
    coalesce(s.decided_replace, 0) AS decided_replace, coalesce(s.decided_abstain, 0) AS decided_abstain,
    coalesce(s.decided_ask, 0) AS decided_ask, coalesce(s.noticed_denials, 0) AS noticed_denials,
    coalesce(s.vendor_rows, 0) AS vendor_only_denials,
    c.census_allowed, c.census_denied, c.census_replaced, c.census_abstained,
    CAST(c.vendor_list AS BIGINT) AS vendor_list,
    c.census_denied = coalesce(s.decided_deny, 0) AS census_agrees, c.is_counted
FROM census AS c
LEFT JOIN seen AS s ON s.run_id = c.run_id
LEFT JOIN denied AS k ON k.run_id = c.run_id
WHERE c.speaks_decisions;
