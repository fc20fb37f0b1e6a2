-- What a destination tells later of the messages it took: postbox_core::reports.

CREATE TABLE outbox_report (
    outbox_id       bigint,
    reported_at     timestamptz NOT NULL,
    received_at     timestamptz NOT NULL DEFAULT now(),
    attempt         integer,
    error_code      integer,
    external_id     text        COLLATE "C" NOT NULL,
    status          text        COLLATE "C" NOT NULL,
    error           text,
    CONSTRAINT outbox_report_pkey PRIMARY KEY (external_id, status),
    CONSTRAINT outbox_report_status CHECK (status IN ('sent', 'failed', 'delivered', 'read'))
);
COMMENT ON TABLE outbox_report IS 'One row per message and status. No recipient and no payload.';
COMMENT ON COLUMN outbox_report.outbox_id IS 'The event: outbox.id. Null when no event was known for it.';
COMMENT ON COLUMN outbox_report.external_id IS 'The destination''s name for the message, as in the receipt (a wamid).';

CREATE INDEX outbox_report_event ON outbox_report (outbox_id);
CREATE INDEX outbox_report_unmatched ON outbox_report (received_at) WHERE outbox_id IS NULL;
-- Receipts of webhooks have no name and are not in it.
CREATE INDEX outbox_delivery_external_id ON outbox_delivery (external_id) WHERE external_id IS NOT NULL;

-- How far a status is.
CREATE FUNCTION outbox_report_rank(status text) RETURNS integer
    LANGUAGE sql IMMUTABLE
AS $$
    SELECT array_position(ARRAY['sent', 'failed', 'delivered', 'read'], status)
$$;

-- Takes in one report, in the caller's transaction.
CREATE FUNCTION outbox_take_in_report(
    of_destinations text[], name text, new_status text, moment timestamptz, of_event uuid, of_attempt integer,
    code integer, why text, follow_up boolean,
    OUT is_new boolean, OUT is_matched boolean, OUT is_resolved boolean, OUT is_enqueued boolean
)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path FROM CURRENT
    SET lock_timeout = '10s'
AS $$
DECLARE
    event    record;
    origin   record;
    delivery record;
    is_step  boolean;
BEGIN
    is_matched := false;
    is_resolved := false;
    is_enqueued := false;
    SELECT e.id, e.event_id, e.aggregate_id, e.headers ->> 'postbox-origin' AS origin, e.headers ->> 'tenant' AS tenant
    INTO event
    FROM outbox e
    WHERE e.event_id = of_event;
    IF NOT FOUND THEN
        SELECT e.id, e.event_id, e.aggregate_id, e.headers ->> 'postbox-origin' AS origin, e.headers ->> 'tenant' AS tenant
        INTO event
        FROM outbox_delivery d
        JOIN outbox e ON e.id = d.outbox_id
        WHERE d.external_id = name AND d.destination = ANY (of_destinations)
        LIMIT 1;
    END IF;
    is_matched := FOUND;

    INSERT INTO outbox_report (external_id, status, reported_at, outbox_id, attempt, error_code, error)
    VALUES (name, new_status, moment, event.id, of_attempt, code, why)
    ON CONFLICT DO NOTHING;
    is_new := FOUND;
    IF NOT is_new OR NOT is_matched THEN
        RETURN;
    END IF;

    SELECT d.shard, d.lane_id, d.destination INTO delivery
    FROM outbox_delivery d
    WHERE d.outbox_id = event.id AND d.destination = ANY (of_destinations)
        AND outbox_is_in_doubt(d.state, d.last_class, coalesce(d.begun, d.attempts), of_attempt);
    IF FOUND THEN
        PERFORM outbox_lock_shards(ARRAY[delivery.shard]);
        UPDATE outbox_delivery d
        SET state = 'delivered', attempts = coalesce(d.begun, d.attempts), begun = NULL, sent_at = clock_timestamp(),
            next_attempt_at = NULL, external_id = name
        WHERE d.outbox_id = event.id AND d.destination = delivery.destination
            AND outbox_is_in_doubt(d.state, d.last_class, coalesce(d.begun, d.attempts), of_attempt);
        is_resolved := FOUND;
        PERFORM outbox_restore_heads(ARRAY[delivery.lane_id], ARRAY[delivery.destination]);
    END IF;

    SELECT NOT EXISTS (
        SELECT FROM outbox_report r
        WHERE r.external_id = name AND r.status <> new_status
            AND outbox_report_rank(r.status) > outbox_report_rank(new_status)) INTO is_step;
    IF is_step AND follow_up THEN
        SELECT o.event_id, o.aggregate_type, o.aggregate_id INTO origin
        FROM outbox o WHERE o.event_id::text = event.origin;
        INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload, headers)
        VALUES (
            coalesce(origin.aggregate_type, 'whatsapp.status'),
            coalesce(origin.aggregate_id, event.aggregate_id),
            'whatsapp.status.' || new_status,
            json_build_object(
                'event_id', coalesce(origin.event_id, event.event_id), 'external_id', name, 'status', new_status,
                'at', to_char(moment AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
                'error', CASE WHEN code IS NOT NULL THEN json_build_object('code', code, 'title', why) END),
            CASE WHEN event.tenant IS NOT NULL THEN json_build_object('tenant', event.tenant) END);
        is_enqueued := true;
    END IF;
END
$$;

-- Whether a report on an attempt settles a delivery that stands so.
CREATE FUNCTION outbox_is_in_doubt(state text, last_class text, attempts integer, of_attempt integer) RETURNS boolean
    LANGUAGE sql IMMUTABLE
AS $$
    SELECT of_attempt BETWEEN 1 AND attempts
        AND (state IN ('retry', 'waiting', 'held') OR state = 'dead' AND last_class = 'unknown')
$$;

-- Takes in what one call brought. The shards of everything that may be settled are locked first and in order, as settles
-- do it, so that the two never wait for each other.
CREATE FUNCTION outbox_take_in_reports(
    of_destinations text[], follow_ups text[], names text[], statuses text[], moments timestamptz[], events uuid[],
    attempts integer[], codes integer[], reasons text[],
    OUT recorded bigint, OUT repeated bigint, OUT unmatched bigint, OUT resolved bigint, OUT enqueued bigint
)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path FROM CURRENT
    SET lock_timeout = '10s'
AS $$
DECLARE
    shards smallint[];
    report record;
    taken  record;
BEGIN
    recorded := 0;
    repeated := 0;
    unmatched := 0;
    resolved := 0;
    enqueued := 0;
    SELECT array_agg(DISTINCT d.shard) INTO shards
    FROM unnest(events, attempts) AS r(event_id, attempt)
    JOIN outbox e ON e.event_id = r.event_id
    JOIN outbox_delivery d ON d.outbox_id = e.id AND d.destination = ANY (of_destinations)
    WHERE outbox_is_in_doubt(d.state, d.last_class, coalesce(d.begun, d.attempts), r.attempt);
    PERFORM outbox_lock_shards(coalesce(shards, '{}'));
    FOR report IN
        SELECT * FROM unnest(names, statuses, moments, events, attempts, codes, reasons)
            AS r(name, status, moment, event_id, attempt, code, why)
    LOOP
        SELECT * INTO taken FROM outbox_take_in_report(of_destinations, report.name, report.status, report.moment,
            report.event_id, report.attempt, report.code, report.why, report.status = ANY (follow_ups));
        recorded := recorded + taken.is_new::integer;
        repeated := repeated + (NOT taken.is_new)::integer;
        unmatched := unmatched + (taken.is_new AND NOT taken.is_matched)::integer;
        resolved := resolved + taken.is_resolved::integer;
        enqueued := enqueued + taken.is_enqueued::integer;
    END LOOP;
END
$$;

REVOKE ALL ON FUNCTION outbox_take_in_reports, outbox_take_in_report, outbox_report_rank, outbox_is_in_doubt FROM PUBLIC;
