-- Where each run stands
-- row: one run
-- from: piece_links (lines, times, sequence), refusals, and the few stored_events that open or end a run or a turn
-- unknown: NULL = no record said so; completeness undecidable = the wire writes no end
-- not counted: second copies of a run; is_counted is false where another run shows the same work
--   completeness: closed (an end was seen and holds), open (no end yet, the run may go on), truncated (cut),
--   inconsistent (the end contradicts the lines, or numbers are missing), undecidable. A run without an end marker is
--   cut where its youngest source ends inside a line of it. dated_at: the last time known of it, or of same_run_as.
CREATE OR REPLACE VIEW run_states AS
WITH links AS (
    FROM piece_links WHERE is_selected
), pieces AS (
    SELECT
        run_id, min(wire) AS wire, count(*) FILTER (WHERE NOT is_beginning) AS sources,
        sum(lines) AS event_lines, sum(events) AS event_rows,
        min(first_seq) AS first_seq, max(last_seq) AS last_seq,
        sum(seq_breaks) AS seq_breaks, sum(CAST(last_seq AS DECIMAL(20, 0)) - first_seq + 1) AS seq_span,
        bool_or(first_seq IS NULL) AS is_unnumbered, bool_or(is_shared) AS is_shared,
        min(first_ts) AS first_ts, max(last_ts) AS last_ts,
        max(piece * 1000000000000000 + last_line * 1000000) AS last_position,
        bool_or(is_cut) AND coalesce(
            max(last_ts) FILTER (WHERE is_cut) > max(last_ts) FILTER (WHERE NOT is_cut AND NOT is_beginning),
            bool_and(is_cut OR is_beginning)
        ) AS is_cut,
        min(same_run_as) AS same_run_as, bool_and(is_counted) AS is_counted, max(other_last_ts) AS other_last_ts
    FROM links
    GROUP BY run_id
), said AS (
    SELECT
        p.run_id, e.kind, p.piece * 1000000000000000 + e.line * 1000000 + e.part AS position, e.ts, e.status, e.outcome,
        e.reason, e.duration_ms, e.declared_events, e.end_rule, e.attributes, e.parent_run_id, e.agent_id,
        e.parent_call_id, ' ' || e.speaks || ' ' AS speaks, (e.attributes->>'adapter') AS adapter
    FROM stored_events AS e JOIN links AS p ON p.source_id = e.source_id AND p.wire_run_id = e.run_id
    WHERE e.kind IN ('run.started', 'run.ended', 'stream.closed') OR e.speaks IS NOT NULL OR e.end_rule IS NOT NULL
), marks AS (
    SELECT
        run_id,
        arg_min(end_rule, position) FILTER (WHERE end_rule IS NOT NULL) AS end_rule,
        arg_max(adapter, position) FILTER (WHERE adapter IS NOT NULL) AS adapter,
        arg_min(attributes, position) FILTER (WHERE kind = 'run.started' AND attributes IS NOT NULL) AS attributes,
        arg_max(attributes, position) FILTER (WHERE kind = 'run.ended' AND attributes IS NOT NULL) AS end_attributes,
        max(parent_run_id) AS parent_run_id,
        max(agent_id) FILTER (WHERE kind = 'run.started') AS agent_id,
        max(parent_call_id) FILTER (WHERE kind = 'run.started') AS parent_call_id,
        bool_or(speaks LIKE '% tokens %') AS speaks_tokens,
        bool_or(speaks LIKE '% cost %') AS speaks_cost,
        bool_or(speaks LIKE '% limits %') AS speaks_limits,
        bool_or(speaks LIKE '% decisions %') AS speaks_decisions,
        bool_or(speaks LIKE '% results %') AS speaks_results,
        bool_or(speaks LIKE '% starts %') AS speaks_starts,
        bool_or(speaks LIKE '% offered %') AS speaks_offered,
        bool_or(speaks LIKE '% withheld %') AS speaks_withheld,
        bool_or(speaks LIKE '% clock %') AS speaks_clock,
        bool_or(speaks LIKE '% outcome %') AS speaks_outcome,
        count(*) FILTER (WHERE kind = 'run.ended') AS ends,
        arg_max(status, position) FILTER (WHERE kind = 'run.ended' AND status IS NOT NULL) AS status,
        arg_max(outcome, position) FILTER (WHERE kind = 'run.ended' AND outcome IS NOT NULL) AS outcome,
        arg_max(reason, position) FILTER (WHERE kind = 'run.ended' AND reason IS NOT NULL) AS end_reason,
        arg_max(duration_ms, position) FILTER (WHERE kind = 'run.ended' AND duration_ms IS NOT NULL) AS duration_ms,
        max(ts) FILTER (WHERE kind IN ('run.ended', 'stream.closed')) AS ended_at,
        count(*) FILTER (WHERE kind = 'stream.closed') AS closings,
        max(position) FILTER (WHERE kind = 'stream.closed') AS closed_position,
        max(declared_events) FILTER (WHERE kind = 'stream.closed') AS declared_lines,
        arg_max(reason, position) FILTER (WHERE kind = 'stream.closed' AND reason IS NOT NULL) AS stream_reason
    FROM said
    GROUP BY run_id
), turns_of_runs AS (
    SELECT
        p.run_id, e.turn_id,
        max(CASE WHEN e.kind = 'turn.started' THEN p.piece * 1000000000000000 + e.line * 1000000 + e.part END)
            AS last_start,
        max(CASE WHEN e.kind = 'turn.ended' THEN p.piece * 1000000000000000 + e.line * 1000000 + e.part END)
            AS last_end
    FROM stored_events AS e
    JOIN links AS p ON p.source_id = e.source_id AND p.wire_run_id = e.run_id
    SEMI JOIN (SELECT run_id FROM marks WHERE end_rule = 'turns') AS m ON m.run_id = p.run_id
    WHERE e.kind IN ('turn.started', 'turn.ended') AND e.is_shadow IS NOT TRUE
    GROUP BY p.run_id, e.turn_id
), turn_marks AS (
    SELECT
        run_id, count(*) AS turns,
        count(*) FILTER (
            WHERE last_end IS NULL OR (turn_id IS NULL AND last_start > last_end)
        ) AS open_turns
    FROM turns_of_runs
    GROUP BY run_id
), refused_lines AS (
    SELECT
        run_id, source_id, line, bool_or(reason <> 'unknown_event') AS is_damage, max(position) AS position
    FROM refusals
    WHERE run_id IS NOT NULL
    GROUP BY run_id, source_id, line
), refused AS (
    SELECT
        run_id, count(*) AS refused_lines, count(*) FILTER (WHERE is_damage) AS damaged_lines,
        max(position) AS last_position
    FROM refused_lines
    GROUP BY run_id
), counted AS (
    SELECT
        p.*, m.* EXCLUDE (run_id), t.turns, t.open_turns,
        CASE WHEN r.refused_lines IS NULL THEN 0 ELSE r.refused_lines END AS refused_lines,
        CASE WHEN r.damaged_lines IS NULL THEN 0 ELSE r.damaged_lines END AS damaged_lines,
        greatest(p.last_position, r.last_position) // 1000000 AS last_line,
        m.closed_position // 1000000 AS closed_line,
        CASE
            WHEN p.is_unnumbered OR p.is_shared THEN NULL
            ELSE CAST(p.last_seq AS DECIMAL(20, 0)) - p.first_seq + 1 - p.seq_span
        END AS missing_between
    FROM pieces AS p
    LEFT JOIN marks AS m ON m.run_id = p.run_id
    LEFT JOIN turn_marks AS t ON t.run_id = p.run_id
    LEFT JOIN refused AS r ON r.run_id = p.run_id
), judged AS (
    SELECT
        *,
        TRY_CAST(attributes->>'repetition' AS DECIMAL(18, 0)) AS repetition,
        CASE
            WHEN end_rule = 'counted' AND closings = 0 THEN 'truncated'
            WHEN end_rule = 'counted' AND closings > 1 THEN 'inconsistent'
            WHEN end_rule = 'counted' AND closed_line <> last_line THEN 'inconsistent'
            WHEN end_rule = 'counted' AND declared_lines = event_lines + refused_lines - 1 THEN 'closed'
            WHEN end_rule = 'counted' THEN 'inconsistent'
            WHEN end_rule = 'sequenced' AND ends = 0 THEN 'truncated'
            WHEN end_rule = 'sequenced' AND (first_seq <> 0 OR seq_breaks > 0 OR missing_between > 0)
                THEN 'inconsistent'
            WHEN end_rule IN ('sequenced', 'replayed', 'marked') AND ends > 0 THEN 'closed'
            WHEN end_rule = 'replayed' THEN 'open'
            WHEN end_rule = 'marked' THEN 'truncated'
            WHEN end_rule IN ('turns', 'none') AND is_cut THEN 'truncated'
            WHEN end_rule = 'turns' AND open_turns > 0 THEN 'open'
            WHEN end_rule = 'turns' AND turns > 0 THEN 'closed'
            ELSE 'undecidable'
        END AS completeness
    FROM counted
)
SELECT
    j.run_id, j.wire, j.parent_run_id, j.agent_id, j.parent_call_id, j.adapter,
    (j.attributes->>'task') AS task,
    (j.attributes->>'variant') AS variant,
    CAST(j.repetition AS BIGINT) AS repetition, (j.attributes->>'cwd') AS working_directory,
    (j.attributes->>'git_branch') AS git_branch,
    coalesce((j.attributes->>'version'), (j.attributes->>'harness_version')) AS agent_version,
    j.first_ts AS started_at,
    CASE
        WHEN j.ends > 0 OR j.closings > 0 OR j.completeness = 'closed' THEN coalesce(j.ended_at, j.last_ts)
    END AS ended_at,
    j.last_ts AS last_seen_at, coalesce(j.last_ts, j.other_last_ts) AS dated_at,
    CASE
        WHEN j.duration_ms IS NOT NULL THEN j.duration_ms
        WHEN (j.ends > 0 OR j.closings > 0 OR j.completeness = 'closed')
            AND coalesce(j.ended_at, j.last_ts) >= j.first_ts
            THEN (epoch_us(coalesce(j.ended_at, j.last_ts)) - epoch_us(j.first_ts)) // 1000
    END AS duration_ms,
    j.outcome, j.status, coalesce(j.stream_reason, j.end_reason) AS close_reason, j.completeness,
    CASE
        WHEN j.completeness = 'undecidable' AND j.end_rule IS NULL THEN 'nothing says how its end is judged'
        WHEN j.completeness = 'undecidable' AND j.end_rule = 'turns' THEN 'no record marks a turn'
        WHEN j.completeness = 'undecidable' THEN 'this stream writes no end'
        WHEN j.completeness = 'truncated' AND j.end_rule IN ('turns', 'none') THEN 'the source ends inside a record'
        WHEN j.completeness = 'closed' AND j.end_rule = 'turns' THEN 'every turn that started has ended'
        WHEN j.completeness = 'open' AND j.end_rule = 'turns' THEN j.open_turns || ' turns have no end'
        WHEN j.completeness = 'closed' AND j.end_rule = 'counted'
            THEN 'the end marker is the last line and declares the ' || j.declared_lines || ' lines before it'
        WHEN j.completeness = 'closed' AND j.end_rule = 'sequenced'
            THEN 'the end event is there and no sequence number is missing'
        WHEN j.completeness = 'closed' THEN 'the end event is there'
        WHEN j.completeness IN ('open', 'truncated') THEN 'no end event'
        WHEN j.end_rule = 'sequenced' AND j.first_seq <> 0
            THEN 'the first sequence number is ' || j.first_seq || ', not 0'
        WHEN j.end_rule = 'sequenced' THEN 'sequence numbers are missing or repeat'
        WHEN j.closings > 1 THEN j.closings || ' end markers'
        WHEN j.closed_line <> j.last_line THEN 'lines stand after the end marker'
        WHEN j.declared_lines IS NULL THEN 'the end marker declares no count'
        ELSE 'the end marker declares ' || j.declared_lines || ' lines, '
            || (j.event_lines + j.refused_lines - 1) || ' stand before it'
    END AS completeness_reason,
    j.attributes, j.end_attributes, j.sources, CAST(j.event_lines AS BIGINT) AS event_lines,
    CAST(j.event_rows AS BIGINT) AS event_rows, j.refused_lines,
    j.damaged_lines, j.completeness = 'closed' AND j.damaged_lines = 0 AS is_whole,
    j.speaks_tokens, j.speaks_cost, j.speaks_limits, j.speaks_decisions, j.speaks_results, j.speaks_starts,
    j.speaks_offered, j.speaks_withheld, j.speaks_clock, j.speaks_outcome,
    concat_ws(
        ' ',
        CASE WHEN j.speaks_tokens THEN 'tokens' END, CASE WHEN j.speaks_cost THEN 'cost' END,
        CASE WHEN j.speaks_limits THEN 'limits' END, CASE WHEN j.speaks_decisions THEN 'decisions' END,
        CASE WHEN j.speaks_results THEN 'results' END, CASE WHEN j.speaks_starts THEN 'starts' END,
        CASE WHEN j.speaks_offered THEN 'offered' END, CASE WHEN j.speaks_withheld THEN 'withheld' END,
        CASE WHEN j.speaks_clock THEN 'clock' END, CASE WHEN j.speaks_outcome THEN 'outcome' END
    ) AS speaks,
    j.same_run_as, j.is_counted
FROM judged AS j;
