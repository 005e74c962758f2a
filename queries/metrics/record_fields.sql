-- Fields of records
-- row: wire × version of the agent × type of record × field (JSON key), of wires that read an agent's own files
-- from: the payload of events (it is read whole: ask for it by name), run_states for the version
-- unknown: version NULL = the run does not say
-- not counted: deeper fields than those of the record and of its payload, message, item, msg or data; wires of
--   harnesses, whose fields are fixed; parts of a line above the first. Copies count as often as they were read
CREATE OR REPLACE VIEW record_fields AS
WITH keyed AS (
    SELECT
        e.run_id, e.wire, e.event,
        unnest([
            {'place': '', 'keys': json_keys(e.payload)},
            {'place': 'payload.', 'keys': json_keys(e.payload, '$.payload')},
            {'place': 'message.', 'keys': json_keys(e.payload, '$.message')},
            {'place': 'item.', 'keys': json_keys(e.payload, '$.item')},
            {'place': 'msg.', 'keys': json_keys(e.payload, '$.msg')},
            {'place': 'data.', 'keys': json_keys(e.payload, '$.data')}
        ]) AS found
    FROM events AS e
    SEMI JOIN (SELECT wire FROM run_links WHERE view_rank IS NOT NULL GROUP BY wire) AS w ON w.wire = e.wire
    WHERE e.part = 0 AND json_valid(e.payload)
), fields AS (
    SELECT run_id, wire, event, found.place AS place, unnest(found.keys) AS key FROM keyed
), counted AS (
    SELECT run_id, wire, event, place || key AS field, count(*) AS records
    FROM fields
    GROUP BY run_id, wire, event, place || key
)
SELECT
    c.wire, s.agent_version AS version, c.event, c.field, CAST(sum(c.records) AS BIGINT) AS records,
    count(DISTINCT c.run_id) AS runs
FROM counted AS c JOIN run_states AS s ON s.run_id = c.run_id
GROUP BY c.wire, s.agent_version, c.event, c.field;
