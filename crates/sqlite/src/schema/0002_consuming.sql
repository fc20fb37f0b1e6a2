-- The consumer's half: an event's id is written in the transaction that acts on the event, so that both commit or
-- neither does. Needs nothing of the migration before it: a consumer's own file gets this one alone.
--
-- From any language, on a connection whose transaction was begun with BEGIN IMMEDIATE:
--   INSERT INTO inbox (consumer, event_id) VALUES ('billing', :event_id) ON CONFLICT DO NOTHING;
-- and changes() says 1 for the first time, 0 for a duplicate.

CREATE TABLE IF NOT EXISTS outbox_migration (
    version    INTEGER PRIMARY KEY,
    applied_at INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000.0 + 0.5 AS INTEGER))
) STRICT;

CREATE TABLE IF NOT EXISTS inbox (
    consumer    TEXT NOT NULL,
    event_id    TEXT NOT NULL,
    received_at INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000.0 + 0.5 AS INTEGER)),
    PRIMARY KEY (consumer, event_id)
) STRICT, WITHOUT ROWID;

-- Anew, with the order of acceptance as its rowid.
ALTER TABLE inbox RENAME TO inbox_without_position;
CREATE TABLE inbox (
    position    INTEGER PRIMARY KEY,
    consumer    TEXT NOT NULL,
    event_id    TEXT NOT NULL,
    received_at INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000.0 + 0.5 AS INTEGER)),
    CONSTRAINT "consumer must have 1 to 100 bytes" CHECK (length(CAST(consumer AS BLOB)) BETWEEN 1 AND 100),
    -- Another spelling of the same id would not be recognised as a duplicate.
    CONSTRAINT "event_id must be a UUID in lower case" CHECK (
        event_id GLOB '????????-????-????-????-????????????'
        AND event_id NOT GLOB '*[^-0-9a-f]*'
        AND length(replace(event_id, '-', '')) = 32),
    UNIQUE (consumer, event_id)
) STRICT;
INSERT INTO inbox (consumer, event_id, received_at)
SELECT consumer, lower(event_id), received_at FROM inbox_without_position ORDER BY received_at;
DROP TABLE inbox_without_position;

-- How far each aggregate has come, for consumers that check the sequence. One row per aggregate, kept for ever.
CREATE TABLE inbox_sequence (
    consumer       TEXT NOT NULL,
    aggregate_type TEXT NOT NULL,
    aggregate_id   TEXT NOT NULL,
    last_seq       INTEGER NOT NULL,
    PRIMARY KEY (consumer, aggregate_type, aggregate_id)
) STRICT, WITHOUT ROWID;

-- What pruning was last told to keep: without it, a row that is gone could not be told from one that never was.
-- Whatever was written at complete_since or later is still there.
CREATE TABLE outbox_retention (
    scope          TEXT PRIMARY KEY CHECK (scope IN ('outbox', 'inbox')),
    keep_ms        INTEGER NOT NULL,
    complete_since INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
