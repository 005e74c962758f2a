-- Expired credentials
-- row: one record that says the credential expired
-- from: events of kind auth.expired
-- unknown: NULL = the record did not say
-- not counted: nothing. Weak evidence: harnesses find it by phrases, so ordinary text can fire it
CREATE OR REPLACE VIEW auth_expired AS
SELECT
    run_id, wire, ts, (attributes->>'credential_source') AS credential_source, message AS detail,
    CAST(attributes->>'source_line' AS BIGINT) AS source_line, source_id, line, position
FROM events
WHERE kind = 'auth.expired';
