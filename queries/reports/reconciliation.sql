-- Denials from every side
-- row: one run where some side shows a denial
-- from: denial_reconciliation
-- unknown: census_* NULL = no census; vendor_list NULL = no list
-- not counted: nothing is added across columns
-- by: none
-- params: since, until, wire, run
-- picture: none
CREATE OR REPLACE VIEW report_reconciliation AS
SELECT
    run_id, wire, adapter, completeness, denied_calls, decided_allow, decided_deny, decided_replace, decided_abstain,
    decided_ask, noticed_denials, vendor_only_denials, census_allowed, census_denied, census_replaced, census_abstained,
    vendor_list, census_agrees
FROM denial_reconciliation
WHERE denied_calls > 0 OR census_denied > 0 OR vendor_list > 0
ORDER BY census_agrees NULLS LAST, denied_calls DESC, run_id;
