-- Hermetic evidence
-- row: one run whose start says how far it was shut off
-- from: hermetic_evidence
-- unknown: NULL = the harness did not say; [] = it said none
-- not counted: runs without such a start record
-- by: none
-- params: since, until, wire, run
-- picture: none
CREATE OR REPLACE VIEW report_hermetic AS
SELECT
    run_id, adapter, completeness, hermetic_mode, hermetic_decisions, hermetic_imposed, hermetic_unavailable,
    hermetic_ambient_inputs, hermetic_installed_plugins, adapter_class, harness_version, permission_mode,
    credential_source, offered_tools, withheld_tools, plugins, mcp_servers, skills, agents, inputs_digest,
    transcript_digest, ambient_warnings, coverage_warnings, opaque_records
FROM hermetic_evidence
ORDER BY run_id;
