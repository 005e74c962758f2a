-- Pieces of runs, linked
-- row: what of one run stands in one source, which run else shows the same work, and the place of the piece by age
-- from: run_pieces, and of stored_events what a run says of its session, usage keys and request ids
-- unknown: same_run_as NULL = no other run shows its work; view_rank NULL = the run states none
-- not counted: second copies of a run. Runs outside the filters are here (is_selected), so that what a run owns does
--   not depend on what one asks for
--   Runs of different wires that state the same session_id are views of one session (a run that states none is the view
--   of its own run id); two runs of one wire are two processes. So are a run and those that name its requests by its
--   own ids. Of several views that of the highest view_rank is the best (a harness states none: 30; one that knows no
--   tokens stands behind those that do). is_counted is false where better views stand for the whole run: a harness for
--   the session it names, else views that show each of its requests; is_replaced, where the best of them is a harness.
--   A subagent's run goes with its session. What runs share belongs to the lowest place: the oldest source first (one
--   without times has those of same_run_as), then the one that ends first, then by run id. apart: the run, if it is not
--   counted; it owns what it shows apart from others.
CREATE OR REPLACE VIEW piece_links AS
WITH pieces AS (
    FROM run_pieces WHERE NOT is_copy
), stated AS (
    SELECT
        run_id, max(parent_run_id) AS parent_run_id, max(view_rank) AS view_rank,
        arg_min(session_id, position) FILTER (WHERE kind = 'run.started' AND session_id IS NOT NULL) AS session_id
    FROM (
        SELECT
            p.run_id, e.kind, e.parent_run_id, p.piece * 1000000000000000 + e.line * 1000000 + e.part AS position,
            (e.attributes->>'session_id') AS session_id,
            TRY_CAST((e.attributes->>'view_rank') AS DECIMAL(9, 0)) AS view_rank
        FROM stored_events AS e JOIN pieces AS p ON p.source_id = e.source_id AND p.wire_run_id = e.run_id
        WHERE e.kind IN ('run.started', 'run.ended')
    )
    GROUP BY run_id
), metered AS (
    SELECT p.run_id
    FROM stored_events AS e JOIN pieces AS p ON p.source_id = e.source_id AND p.wire_run_id = e.run_id
    WHERE (e.usage_key IS NOT NULL OR e.usage_scope = 'turn_total') AND e.is_shadow IS NOT TRUE
        AND (e.input_tokens IS NOT NULL OR e.output_tokens IS NOT NULL)
    GROUP BY p.run_id
), views AS (
    SELECT
        r.run_id, r.wire, coalesce(s.session_id, r.run_id) AS session_id, CAST(s.view_rank AS INTEGER) AS view_rank,
        CASE
            WHEN s.view_rank IS NULL THEN 30
            WHEN s.view_rank < 30 AND m.run_id IS NULL THEN CAST(s.view_rank AS INTEGER) - 15
            ELSE CAST(s.view_rank AS INTEGER)
        END AS rank,
        s.parent_run_id
    FROM (SELECT run_id, min(wire) AS wire FROM pieces GROUP BY run_id) AS r
    LEFT JOIN stated AS s ON s.run_id = r.run_id
    LEFT JOIN metered AS m ON m.run_id = r.run_id
), keyed AS NOT MATERIALIZED (
    SELECT
        p.run_id, p.wire, e.usage_key, e.usage_scope, p.piece * 1000000000000000 + e.line * 1000000 + e.part AS position
    FROM stored_events AS e JOIN pieces AS p ON p.source_id = e.source_id AND p.wire_run_id = e.run_id
    WHERE e.usage_key IS NOT NULL AND e.usage_scope IN ('snapshot', 'delta') AND e.is_shadow IS NOT TRUE
), named_requests AS (
    SELECT p.run_id, e.request_id, k.run_id AS other_run_id, bool_or(k.wire <> p.wire) AS is_of_two_wires
    FROM stored_events AS e
    JOIN pieces AS p ON p.source_id = e.source_id AND p.wire_run_id = e.run_id
    JOIN keyed AS k ON k.usage_key = e.request_id
    WHERE e.usage_scope IS NOT NULL AND e.usage_key IS NULL AND e.request_id IS NOT NULL AND e.is_shadow IS NOT TRUE
    GROUP BY p.run_id, e.request_id, k.run_id
), links AS (
    SELECT a.run_id, a.rank, b.run_id AS other_run_id, b.rank AS other_rank, b.rank >= 30 AS is_whole
    FROM views AS a
    JOIN views AS b ON b.session_id = a.session_id AND b.wire <> a.wire
    UNION
    SELECT a.run_id, a.rank, b.run_id, b.rank, false
    FROM (
        SELECT run_id, other_run_id FROM named_requests WHERE is_of_two_wires
        UNION
        SELECT other_run_id, run_id FROM named_requests WHERE is_of_two_wires
    ) AS n
    JOIN views AS a ON a.run_id = n.run_id
    JOIN views AS b ON b.run_id = n.other_run_id
), ranked AS (
    SELECT
        *, row_number() OVER (PARTITION BY run_id ORDER BY other_rank DESC, other_run_id, is_whole) AS place,
        other_rank > rank OR (other_rank = rank AND other_run_id < run_id) AS is_better,
        bool_or(is_whole AND (other_rank > rank OR other_run_id < run_id)) OVER (PARTITION BY run_id) AS is_replaced
    FROM links
), members AS (
    SELECT run_id AS about, other_run_id AS run_id, false AS is_own FROM ranked WHERE is_better AND NOT is_replaced
    UNION
    SELECT r.run_id, v.run_id, false
    FROM ranked AS r JOIN views AS v ON v.parent_run_id = r.other_run_id
    WHERE r.is_better AND NOT r.is_replaced AND starts_with(v.run_id, r.other_run_id || '/')
    UNION
    SELECT run_id, run_id, true FROM ranked WHERE is_better AND NOT is_replaced
), last_totals AS (
    SELECT p.run_id, max(p.piece * 1000000000000000 + e.line * 1000000 + e.part) AS position
    FROM stored_events AS e
    JOIN pieces AS p ON p.source_id = e.source_id AND p.wire_run_id = e.run_id
    SEMI JOIN members AS m ON m.run_id = p.run_id
    WHERE e.usage_scope IN ('final', 'turn_total') AND e.is_shadow IS NOT TRUE
    GROUP BY p.run_id
), shown AS (
    SELECT
        m.about, k.usage_key, m.is_own AS is_asked,
        NOT m.is_own AND (t.position IS NULL OR k.position <= t.position) AS is_shown
    FROM keyed AS k
    JOIN members AS m ON m.run_id = k.run_id
    LEFT JOIN last_totals AS t ON t.run_id = k.run_id
    UNION ALL
    SELECT m.about, n.request_id, false, true
    FROM named_requests AS n JOIN members AS m ON m.run_id = n.run_id
), not_shown AS (
    SELECT about
    FROM (
        SELECT about, usage_key, bool_or(is_asked) AND NOT bool_or(is_shown) AS is_missing
        FROM shown
        GROUP BY about, usage_key
    )
    WHERE is_missing
    GROUP BY about
), judged AS (
    SELECT
        v.run_id, v.session_id, v.view_rank, v.parent_run_id, b.other_run_id AS same_run_as,
        b.is_replaced IS NOT TRUE AND (a.about IS NULL OR n.about IS NOT NULL) AS is_counted,
        b.other_rank >= 30 AND (b.is_replaced OR (a.about IS NOT NULL AND n.about IS NULL)) AS is_replaced
    FROM views AS v
    LEFT JOIN ranked AS b ON b.run_id = v.run_id AND b.place = 1
    LEFT JOIN (SELECT about FROM members WHERE is_own) AS a ON a.about = v.run_id
    LEFT JOIN not_shown AS n ON n.about = v.run_id
), states AS (
    SELECT
        j.run_id, j.session_id, j.view_rank, j.is_counted AND s.run_id IS NULL AS is_counted,
        j.is_replaced IS TRUE OR s.is_replaced IS TRUE AS is_replaced,
        coalesce(j.same_run_as, s.same_run_as) AS same_run_as,
        dense_rank() OVER (ORDER BY j.run_id) AS run_number
    FROM judged AS j
    LEFT JOIN judged AS s
        ON s.run_id = j.parent_run_id AND NOT s.is_counted AND starts_with(j.run_id, s.run_id || '/')
), begun AS (
    SELECT run_id, min(began_at) AS began_at, max(last_ts) AS last_ts FROM pieces GROUP BY run_id
)
SELECT
    p.*, s.session_id, s.view_rank, s.same_run_as, s.is_counted, s.is_replaced, n.run_id IS NOT NULL AS names_requests,
    CASE WHEN NOT s.is_counted THEN p.run_id END AS apart, s.run_number, b.last_ts AS other_last_ts,
    row_number() OVER (
        ORDER BY
            coalesce(p.began_at, b.began_at) NULLS LAST, coalesce(p.last_ts, b.last_ts) NULLS LAST, p.run_id,
            p.source_id, p.first_line
    ) AS place
FROM pieces AS p
JOIN states AS s ON s.run_id = p.run_id
LEFT JOIN begun AS b ON b.run_id = s.same_run_as
LEFT JOIN (SELECT run_id FROM named_requests GROUP BY run_id) AS n ON n.run_id = p.run_id;
