-- Hermetic evidence
-- row: one run whose start says how far it was shut off from its surroundings
-- from: run_states (attributes of the start), events of kinds tool.offered and warning
-- unknown: NULL = the harness did not say; an empty list [] = it said none
-- not counted: runs without such a start record
--   hermetic_* is the harness's own claim, not evidence; the other columns are what can be held against it.
CREATE OR REPLACE VIEW hermetic_evidence AS
WITH offered AS (
    SELECT run_id, count(*) FILTER (WHERE status = 'offered') AS tools,
        count(*) FILTER (WHERE status = 'withheld') AS withheld
    FROM events
    WHERE kind = 'tool.offered'
    GROUP BY run_id
), doubts AS (
    SELECT
        run_id,
        count(*) FILTER (WHERE kind = 'opaque') AS opaque_records,
        count(*) FILTER (WHERE kind = 'warning' AND status = 'AMBIENT_INPUT') AS ambient_warnings,
        count(*) FILTER (WHERE kind = 'warning' AND status = 'COVERAGE_GAP') AS coverage_warnings
    FROM events
    WHERE kind IN ('opaque', 'warning')
    GROUP BY run_id
)
SELECT
    s.run_id, s.wire, s.adapter, s.completeness,
    (s.attributes->>'$.hermetic.mode') AS hermetic_mode,
    (s.attributes->>'$.hermetic.decisions') AS hermetic_decisions,
    (s.attributes->>'$.hermetic.imposed') AS hermetic_imposed,
    (s.attributes->>'$.hermetic.unavailable') AS hermetic_unavailable,
    (s.attributes->>'$.hermetic.ambient_inputs') AS hermetic_ambient_inputs,
    (s.attributes->>'$.hermetic.installed_plugins') AS hermetic_installed_plugins,
    (s.attributes->>'adapter_class') AS adapter_class,
    (s.attributes->>'harness_version') AS harness_version,
    (s.attributes->>'session_id') AS session_id,
    (s.attributes->>'model') AS model,
    (s.attributes->>'permission_mode') AS permission_mode,
    (s.attributes->>'credential_source') AS credential_source,
    (s.attributes->>'output_style') AS output_style,
    (s.attributes->>'cwd') AS cwd,
    (s.attributes->>'inputs_digest') AS inputs_digest,
    (s.attributes->>'$.transcript.path') AS transcript_path,
    (s.attributes->>'$.transcript.digest') AS transcript_digest,
    (s.attributes->>'$.transcript.bytes') AS transcript_bytes,
    CASE WHEN s.speaks_offered THEN coalesce(o.tools, 0) END AS offered_tools,
    CASE WHEN s.speaks_withheld THEN coalesce(o.withheld, 0) END AS withheld_tools,
    (s.attributes->>'available_operations') AS available_operations,
    (s.attributes->>'slash_commands') AS slash_commands,
    (s.attributes->>'skills') AS skills,
    (s.attributes->>'agents') AS agents,
    (s.attributes->>'plugins') AS plugins,
    (s.attributes->>'mcp_servers') AS mcp_servers,
    coalesce(d.ambient_warnings, 0) AS ambient_warnings,
    coalesce(d.coverage_warnings, 0) AS coverage_warnings,
    coalesce(d.opaque_records, 0) AS opaque_records
FROM run_states AS s
LEFT JOIN offered AS o ON o.run_id = s.run_id
LEFT JOIN doubts AS d ON d.run_id = s.run_id
WHERE (s.attributes->>'hermetic') IS NOT NULL;
