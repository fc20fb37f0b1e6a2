-- The tables of the outbox. Text that is compared and never sorted for people is COLLATE "C": its indexes are
-- cheaper, and an upgrade of the operating system's locales cannot corrupt them.

CREATE SEQUENCE outbox_id_seq;

-- Events. Insert-only: nothing but pruning changes a row.
CREATE TABLE outbox (
    id              bigint      PRIMARY KEY,
    aggregate_seq   bigint      NOT NULL,
    lane_id         bigint      NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT now(),
    deliver_after   timestamptz,
    expires_at      timestamptz,
    event_id        uuid        NOT NULL,
    payload_bytes   integer     NOT NULL,
    shard           smallint    NOT NULL,
    aggregate_type  text        COLLATE "C" NOT NULL,
    aggregate_id    text        COLLATE "C" NOT NULL,
    event_type      text        COLLATE "C" NOT NULL,
    payload         json        NOT NULL,
    headers         json,
    CONSTRAINT outbox_event_id_key UNIQUE (event_id),
    CONSTRAINT outbox_aggregate_seq_key UNIQUE (aggregate_type, aggregate_id, aggregate_seq),
    -- Programs that read these as calendar dates know the years 1 to 9999 and no infinity.
    CONSTRAINT outbox_created_at_range CHECK (created_at BETWEEN '0001-01-03 UTC' AND '9999-12-29 UTC'),
    CONSTRAINT outbox_deliver_after_range CHECK (deliver_after BETWEEN '0001-01-03 UTC' AND '9999-12-29 UTC'),
    CONSTRAINT outbox_expires_at_range CHECK (expires_at BETWEEN '0001-01-03 UTC' AND '9999-12-29 UTC')
);
ALTER SEQUENCE outbox_id_seq OWNED BY outbox.id;

COMMENT ON TABLE outbox IS 'One row per event, written in the transaction of the business change.';
COMMENT ON COLUMN outbox.id IS 'Position; within an aggregate, id order = sequence order = commit order. Always drawn by the database.';
COMMENT ON COLUMN outbox.event_id IS 'Identity towards receivers. Left out: a UUID version 7. A repeated one is refused, or ignored with ON CONFLICT (event_id) DO NOTHING.';
COMMENT ON COLUMN outbox.aggregate_seq IS 'Gapless from 1 per aggregate. Left out: the next one. Anything but the next one is an error.';
COMMENT ON COLUMN outbox.lane_id IS 'Number of the aggregate (outbox_lane).';
COMMENT ON COLUMN outbox.shard IS 'lane_id % 64: the unit in which relays share the work.';
COMMENT ON COLUMN outbox.payload IS 'The exact text that is stored, signed and sent; payload::jsonb to query it.';
COMMENT ON COLUMN outbox.payload_bytes IS 'Length of the payload''s text in bytes.';
COMMENT ON COLUMN outbox.headers IS 'JSON object of text values that travels beside the payload (trace context, tenant).';
COMMENT ON COLUMN outbox.deliver_after IS 'The event, and its lane behind it, waits until then.';
COMMENT ON COLUMN outbox.expires_at IS 'Past this moment the event is recorded as expired instead of sent.';

-- Aggregates. Its row is the lock that serialises the writers of one aggregate until they commit.
CREATE TABLE outbox_lane (
    lane_id         bigint      GENERATED ALWAYS AS IDENTITY,
    last_seq        bigint      NOT NULL DEFAULT 0,
    aggregate_type  text        COLLATE "C" NOT NULL,
    aggregate_id    text        COLLATE "C" NOT NULL,
    CONSTRAINT outbox_lane_pkey PRIMARY KEY (aggregate_type, aggregate_id)
);
COMMENT ON COLUMN outbox_lane.last_seq IS 'Highest sequence that pruning removed; the next event continues after it.';

-- The to-do list: events of which nothing is known yet.
CREATE TABLE outbox_pending (
    id              bigint      NOT NULL,
    lane_id         bigint      NOT NULL,
    shard           smallint    NOT NULL,
    CONSTRAINT outbox_pending_pkey PRIMARY KEY (shard, id)
);

-- What happened: a receipt per delivery, and every exception.
CREATE TABLE outbox_delivery (
    outbox_id       bigint      NOT NULL,
    lane_id         bigint      NOT NULL,
    sent_at         timestamptz,
    next_attempt_at timestamptz,
    attempts        integer     NOT NULL,
    replays         integer     NOT NULL DEFAULT 0,
    uncounted       integer,
    begun           integer,
    shard           smallint    NOT NULL,
    status          smallint,
    state           text        COLLATE "C" NOT NULL,
    destination     text        COLLATE "C" NOT NULL,
    external_id     text,
    last_class      text,
    last_error      text,
    history         jsonb,
    CONSTRAINT outbox_delivery_pkey PRIMARY KEY (outbox_id, destination),
    CONSTRAINT outbox_delivery_state CHECK (state IN
        ('delivered', 'retry', 'waiting', 'held', 'dead', 'discarded', 'expired', 'unrouted'))
);
COMMENT ON COLUMN outbox_delivery.outbox_id IS 'The event: outbox.id.';
COMMENT ON COLUMN outbox_delivery.destination IS 'Name of the destination; empty for an event that no route matched.';
COMMENT ON COLUMN outbox_delivery.state IS 'delivered, discarded, expired: finished. dead, unrouted: an operator decides. retry or held: head of its lane. waiting: behind the head.';
COMMENT ON COLUMN outbox_delivery.attempts IS 'Requests really started since the event was written or last replayed.';
COMMENT ON COLUMN outbox_delivery.uncounted IS 'Of the attempts, those that do not count against the attempts allowed: refused by a limit, or for a suspended account.';
COMMENT ON COLUMN outbox_delivery.begun IS 'Number of an attempt that was committed before its request and of which nothing more is recorded: nobody knows whether it arrived.';
COMMENT ON COLUMN outbox_delivery.history IS 'The last 20 failed attempts, oldest first.';

-- Receipts are the many and touch none of these.
CREATE INDEX outbox_delivery_heads ON outbox_delivery (lane_id, destination)
    WHERE state IN ('retry', 'held');
CREATE INDEX outbox_delivery_lane ON outbox_delivery (lane_id, destination, outbox_id)
    WHERE state IN ('retry', 'waiting', 'held');
CREATE INDEX outbox_delivery_due ON outbox_delivery (destination, shard, next_attempt_at)
    WHERE state = 'retry';
CREATE INDEX outbox_delivery_exceptions ON outbox_delivery (destination, state, outbox_id)
    WHERE state IN ('retry', 'waiting', 'held', 'dead', 'unrouted');

-- Running relays. One row each, renewed as one; a relay without a row owns nothing.
CREATE TABLE outbox_relay (
    relay           uuid        PRIMARY KEY,
    label           text        NOT NULL,
    started_at      timestamptz NOT NULL,
    leased_until    timestamptz NOT NULL,
    in_flight       integer     NOT NULL
) WITH (fillfactor = 50);

-- Who works on which shard. A row changes only when its shard changes hands.
CREATE TABLE outbox_shard (
    shard           smallint    PRIMARY KEY,
    owner           uuid,
    epoch           bigint      NOT NULL DEFAULT 0,
    taken_at        timestamptz
);
INSERT INTO outbox_shard (shard) SELECT generate_series(0, 63);
COMMENT ON COLUMN outbox_shard.epoch IS 'Fencing token: goes up each time the shard is taken.';

-- The consumer's half: what it has processed. It may be there already, without an outbox (0007_consuming.sql).
CREATE TABLE IF NOT EXISTS inbox (
    consumer        text        COLLATE "C" NOT NULL,
    event_id        uuid        NOT NULL,
    received_at     timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT inbox_pkey PRIMARY KEY (consumer, event_id)
);

-- The hot, short-lived rows: clean up after a fixed number of dead ones instead of a share of the table.
ALTER TABLE outbox_pending SET (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0);
