-- The outbox in SQLite's dialect. Everything a producing program executes here works from SQLite 3.38 on, because the
-- schema is read by whatever library that program carries, not by ours.
--
-- Moments are INTEGER milliseconds since 1970-01-01 UTC, the resolution of SQLite's own clock: numbers compare and add
-- without a format to get wrong (text would sort 'T' behind a blank). The views show them as SQLite's date functions
-- do, 'YYYY-MM-DD HH:MM:SS.SSS', so that they compare with datetime('now'). From a producer:
-- deliver_after = unixepoch('now', '+1 hour') * 1000.

-- Versions applied to this database. It and the inbox may be there already, without an outbox (0002_consuming.sql).
CREATE TABLE IF NOT EXISTS outbox_migration (
    version    INTEGER PRIMARY KEY,
    applied_at INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000.0 + 0.5 AS INTEGER))
) STRICT;

-- One row per event. A producer gives aggregate_type, aggregate_id, event_type and payload, may give the rest, and
-- leaves id, lane_id and shard alone. Both stay NULL only between the insert and its trigger.
CREATE TABLE outbox (
    id             INTEGER PRIMARY KEY AUTOINCREMENT,
    event_id       TEXT NOT NULL UNIQUE DEFAULT (
        -- UUID version 7: 48 bits of milliseconds, version, 12 random bits, variant, 62 random bits.
        printf('%08x-%04x-7%03x-%04x-%012x',
            CAST((julianday('now') - 2440587.5) * 86400000.0 + 0.5 AS INTEGER) >> 16,
            CAST((julianday('now') - 2440587.5) * 86400000.0 + 0.5 AS INTEGER) & 65535,
            random() & 4095,
            32768 | (random() & 16383),
            random() & 281474976710655)),
    aggregate_type TEXT NOT NULL,
    aggregate_id   TEXT NOT NULL,
    aggregate_seq  INTEGER,
    event_type     TEXT NOT NULL,
    payload        TEXT NOT NULL,
    headers        TEXT,
    created_at     INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000.0 + 0.5 AS INTEGER)),
    deliver_after  INTEGER,
    expires_at     INTEGER,
    lane_id        INTEGER,
    shard          INTEGER GENERATED ALWAYS AS (lane_id % 64) VIRTUAL,

    CONSTRAINT "event_id must be a UUID in lower case" CHECK (
        event_id GLOB '????????-????-????-????-????????????'
        AND event_id NOT GLOB '*[^-0-9a-f]*'
        AND length(replace(event_id, '-', '')) = 32),
    CONSTRAINT "aggregate_type must have 1 to 512 bytes and no control characters" CHECK (
        length(CAST(aggregate_type AS BLOB)) BETWEEN 1 AND 512
        AND instr(CAST(aggregate_type AS BLOB), x'00') = 0
        AND aggregate_type NOT GLOB '*[' || char(1, 45, 31, 127, 45, 159) || ']*'),
    CONSTRAINT "aggregate_id must have 1 to 512 bytes and no control characters" CHECK (
        length(CAST(aggregate_id AS BLOB)) BETWEEN 1 AND 512
        AND instr(CAST(aggregate_id AS BLOB), x'00') = 0
        AND aggregate_id NOT GLOB '*[' || char(1, 45, 31, 127, 45, 159) || ']*'),
    CONSTRAINT "event_type must have 1 to 512 bytes, all printable and none a space" CHECK (
        length(CAST(event_type AS BLOB)) BETWEEN 1 AND 512
        AND instr(CAST(event_type AS BLOB), x'00') = 0
        -- Control characters and everything that Unicode calls a space or a line or paragraph separator.
        AND event_type NOT GLOB '*[' || char(
            1, 45, 32, 127, 45, 160, 5760, 8192, 45, 8207, 8232, 45, 8239, 8287, 45, 8303, 12288, 65279) || ']*'),
    CONSTRAINT "payload must be JSON" CHECK (
        json_valid(payload) AND instr(CAST(payload AS BLOB), x'00') = 0),
    CONSTRAINT "headers must be a JSON object of text values" CHECK (
        headers IS NULL
        OR CASE WHEN json_valid(headers) THEN json_type(headers) = 'object' ELSE 0 END
        AND instr(CAST(headers AS BLOB), x'00') = 0),
    -- The lower bounds catch seconds given by mistake.
    CONSTRAINT "created_at must be in milliseconds since 1970" CHECK (
        created_at BETWEEN 100000000000 AND 253402300799999),
    CONSTRAINT "deliver_after must be in milliseconds since 1970" CHECK (
        deliver_after IS NULL OR deliver_after BETWEEN 100000000000 AND 253402300799999),
    CONSTRAINT "expires_at must be in milliseconds since 1970" CHECK (
        expires_at IS NULL OR expires_at BETWEEN 100000000000 AND 253402300799999)
) STRICT;

-- Partial, so that the insert touches it once only: when its trigger fills both columns in.
CREATE UNIQUE INDEX outbox_lane_seq ON outbox (lane_id, aggregate_seq) WHERE lane_id IS NOT NULL;

-- One row per aggregate, kept for ever: it remembers the last sequence when every event has been pruned.
CREATE TABLE outbox_lane (
    lane_id        INTEGER PRIMARY KEY,
    aggregate_type TEXT NOT NULL,
    aggregate_id   TEXT NOT NULL,
    last_seq       INTEGER NOT NULL DEFAULT 0,
    UNIQUE (aggregate_type, aggregate_id)
) STRICT;

-- The to-do list: one row per event of which nothing is known yet.
CREATE TABLE outbox_pending (
    shard   INTEGER NOT NULL,
    id      INTEGER NOT NULL,
    lane_id INTEGER NOT NULL,
    PRIMARY KEY (shard, id)
) STRICT, WITHOUT ROWID;

-- What happened: a receipt per delivery, and every exception. outbox_id is the event's id.
CREATE TABLE outbox_delivery (
    outbox_id       INTEGER NOT NULL,
    destination     TEXT NOT NULL,
    lane_id         INTEGER NOT NULL,
    shard           INTEGER NOT NULL,
    state           TEXT NOT NULL CHECK (
        state IN ('delivered', 'retry', 'waiting', 'held', 'dead', 'discarded', 'expired', 'unrouted')),
    attempts        INTEGER NOT NULL,
    -- Of the attempts, those that do not count against the attempts allowed.
    uncounted       INTEGER,
    -- Number of an attempt that was committed before its request and of which nothing more is recorded.
    begun           INTEGER,
    replays         INTEGER NOT NULL DEFAULT 0,
    next_attempt_at INTEGER,
    sent_at         INTEGER,
    status          INTEGER,
    external_id     TEXT,
    last_error      TEXT,
    last_class      TEXT,
    history         TEXT,
    PRIMARY KEY (outbox_id, destination)
) STRICT, WITHOUT ROWID;

-- Exceptions only: a receipt is in none of these.
CREATE INDEX outbox_delivery_due ON outbox_delivery (destination, shard, next_attempt_at, lane_id)
    WHERE state = 'retry';
CREATE INDEX outbox_delivery_head ON outbox_delivery (lane_id, destination) WHERE state IN ('retry', 'held');
CREATE INDEX outbox_delivery_lane ON outbox_delivery (lane_id, destination, outbox_id)
    WHERE state IN ('retry', 'waiting', 'held');
CREATE INDEX outbox_delivery_state ON outbox_delivery (state, outbox_id) WHERE sent_at IS NULL;
CREATE INDEX outbox_delivery_destination ON outbox_delivery (destination, state, outbox_id) WHERE sent_at IS NULL;

-- A number taken by AFTER INSERT, since in SQLite a BEFORE trigger cannot change the new row. A repeated event_id under
-- ON CONFLICT DO NOTHING does not fire it, so it leaves neither a gap nor a to-do row.
--
-- No statement in here can meet a conflict: an OR clause of the producer's INSERT would decide it, not ours.
CREATE TRIGGER outbox_enqueue AFTER INSERT ON outbox BEGIN
    SELECT RAISE(ABORT, 'outbox: id, lane_id and shard come from the database: leave them out')
    WHERE NEW.lane_id IS NOT NULL OR NEW.id < 1 OR EXISTS (SELECT 1 FROM outbox WHERE id > NEW.id)
       OR NEW.id <= (SELECT seq FROM sqlite_sequence WHERE name = 'outbox');

    SELECT RAISE(ABORT, 'outbox: headers must be a JSON object of text values')
    WHERE NEW.headers IS NOT NULL AND EXISTS (
        -- Half of a surrogate pair reads as U+FFFD; it and NUL are escapes that no header can carry.
        SELECT 1 FROM json_each(NEW.headers)
        WHERE type <> 'text' OR instr(value, char(0)) > 0 OR value GLOB '*' || char(65533) || '*');

    INSERT INTO outbox_lane (aggregate_type, aggregate_id)
    SELECT NEW.aggregate_type, NEW.aggregate_id
    WHERE NOT EXISTS (
        SELECT 1 FROM outbox_lane WHERE aggregate_type = NEW.aggregate_type AND aggregate_id = NEW.aggregate_id);

    -- RAISE takes an expression from SQLite 3.47 on only, and an older library could not even read the schema then. A
    -- JSON path that is none is quoted in the error instead.
    SELECT json_extract('{}',
        'outbox: aggregate_seq of ' || aggregate_type || ' ' || aggregate_id || ' must be ' || (last_seq + 1)
        || ', not ' || NEW.aggregate_seq)
    FROM outbox_lane
    WHERE aggregate_type = NEW.aggregate_type AND aggregate_id = NEW.aggregate_id
      AND NEW.aggregate_seq <> last_seq + 1;

    UPDATE outbox_lane SET last_seq = last_seq + 1
    WHERE aggregate_type = NEW.aggregate_type AND aggregate_id = NEW.aggregate_id;

    UPDATE outbox SET (lane_id, aggregate_seq) = (
        SELECT lane_id, last_seq FROM outbox_lane
        WHERE aggregate_type = NEW.aggregate_type AND aggregate_id = NEW.aggregate_id)
    WHERE id = NEW.id;

    INSERT INTO outbox_pending (shard, id, lane_id)
    SELECT lane_id % 64, NEW.id, lane_id FROM outbox_lane
    WHERE aggregate_type = NEW.aggregate_type AND aggregate_id = NEW.aggregate_id;
END;

-- Live relays; all shards of a relay live and die with its row.
CREATE TABLE outbox_relay (
    relay        TEXT PRIMARY KEY,
    label        TEXT NOT NULL,
    in_flight    INTEGER NOT NULL DEFAULT 0,
    started_at   INTEGER NOT NULL,
    leased_until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Who works on which shard; epoch goes up by one each time a shard is taken.
CREATE TABLE outbox_shard (
    shard    INTEGER PRIMARY KEY,
    owner    TEXT,
    epoch    INTEGER NOT NULL DEFAULT 0,
    taken_at INTEGER
) STRICT;

WITH RECURSIVE numbers (shard) AS (SELECT 0 UNION ALL SELECT shard + 1 FROM numbers WHERE shard < 63)
INSERT INTO outbox_shard (shard) SELECT shard FROM numbers;

-- Endpoints kept as data.
CREATE TABLE outbox_destination (
    name            TEXT PRIMARY KEY,
    config          TEXT NOT NULL CONSTRAINT "config must be a JSON object" CHECK (
        CASE WHEN json_valid(config) THEN json_type(config) = 'object' ELSE 0 END),
    disabled_at     INTEGER,
    disabled_reason TEXT
) STRICT, WITHOUT ROWID;

-- The consumer's half: events that were processed.
CREATE TABLE IF NOT EXISTS inbox (
    consumer    TEXT NOT NULL,
    event_id    TEXT NOT NULL,
    received_at INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000.0 + 0.5 AS INTEGER)),
    PRIMARY KEY (consumer, event_id)
) STRICT, WITHOUT ROWID;

-- One row per event. sent_at is when the last of its destinations confirmed it, and NULL as long as one did not.
CREATE VIEW outbox_status AS
SELECT id, event_id, aggregate_type, aggregate_id, aggregate_seq, event_type,
    strftime('%Y-%m-%d %H:%M:%f', created_at / 1000.0, 'unixepoch') AS created_at,
    CASE state WHEN 'delivered' THEN strftime('%Y-%m-%d %H:%M:%f', (
        SELECT max(sent_at) FROM outbox_delivery WHERE outbox_id = event.id) / 1000.0, 'unixepoch') END AS sent_at,
    (SELECT coalesce(sum(attempts), 0) FROM outbox_delivery WHERE outbox_id = event.id) AS attempts,
    state
FROM (
    SELECT *, CASE
        WHEN EXISTS (SELECT 1 FROM outbox_pending WHERE shard = outbox.shard AND id = outbox.id) THEN 'pending'
        ELSE (
            -- The least finished state of its deliveries.
            SELECT state FROM outbox_delivery WHERE outbox_id = outbox.id
            ORDER BY CASE state
                WHEN 'held' THEN 1 WHEN 'retry' THEN 2 WHEN 'waiting' THEN 3 WHEN 'dead' THEN 4
                WHEN 'unrouted' THEN 5 WHEN 'expired' THEN 6 WHEN 'discarded' THEN 7 ELSE 8 END
            LIMIT 1)
        END AS state
    FROM outbox) AS event;

-- One row with the numbers an alert needs. Counts stop at 100,001, which means "more than 100,000",
-- so that it costs the same on every table.
CREATE VIEW outbox_health AS
WITH clock (now) AS (
    SELECT CAST((julianday('now') - 2440587.5) * 86400000.0 + 0.5 AS INTEGER)
),
oldest (id) AS (
    -- The oldest event per kind that its own deliver_after does not put off.
    SELECT min(id) FROM (
        SELECT (
            SELECT e.id FROM (SELECT id FROM outbox_pending WHERE shard = s.shard ORDER BY id LIMIT 1000) AS p
            JOIN outbox AS e ON e.id = p.id
            WHERE e.deliver_after IS NULL OR e.deliver_after <= clock.now
            ORDER BY p.id LIMIT 1) AS id
        FROM outbox_shard AS s, clock
        UNION ALL
        SELECT (
            SELECT e.id FROM (
                SELECT outbox_id FROM outbox_delivery WHERE state = kind.column1 AND sent_at IS NULL
                ORDER BY outbox_id LIMIT 100000) AS d
            JOIN outbox AS e ON e.id = d.outbox_id
            WHERE e.deliver_after IS NULL OR e.deliver_after <= clock.now
            ORDER BY d.outbox_id LIMIT 1)
        FROM (VALUES ('retry'), ('waiting'), ('held')) AS kind, clock)
)
SELECT
    coalesce(max(0.0, (now - event.created_at) / 1000.0), 0.0) AS lag_seconds,
    event.event_id AS oldest_event,
    (SELECT count(*) FROM (SELECT 1 FROM outbox_pending LIMIT 100001)) AS pending,
    (SELECT coalesce(sum(in_flight), 0) FROM outbox_relay WHERE leased_until > now) AS in_flight,
    (SELECT count(*) FROM (
        SELECT 1 FROM outbox_delivery
        WHERE state IN ('retry', 'waiting', 'held') AND sent_at IS NULL LIMIT 100001)) AS struggling,
    (SELECT count(*) FROM (
        SELECT 1 FROM outbox_delivery WHERE state = 'dead' AND sent_at IS NULL LIMIT 100001)) AS dead,
    (SELECT count(*) FROM (
        SELECT 1 FROM outbox_delivery WHERE state = 'unrouted' AND sent_at IS NULL LIMIT 100001)) AS unrouted
FROM clock, oldest LEFT JOIN outbox AS event ON event.id = oldest.id;
