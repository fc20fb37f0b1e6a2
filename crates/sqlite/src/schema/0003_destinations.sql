-- Destinations kept as data. postbox_core::endpoint describes what the settings may say.
--
-- Anybody may write these tables, with plain SQL too: triggers raise the version with every row. SQLite has one writer
-- at a time, so versions become visible in order and complete.

-- Nothing ever read the table of this name that version 1 made.
DROP TABLE outbox_destination;

CREATE TABLE outbox_destination (
    name            TEXT NOT NULL PRIMARY KEY,
    settings        TEXT,
    disabled_at     INTEGER,
    disabled_reason TEXT,
    created_at      INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000.0 + 0.5 AS INTEGER)),
    updated_at      INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000.0 + 0.5 AS INTEGER)),

    CONSTRAINT "name must have 1 to 100 letters, digits, dots, hyphens and underscores" CHECK (
        length(CAST(name AS BLOB)) BETWEEN 1 AND 100 AND name NOT GLOB '*[^-A-Za-z0-9._]*'),
    CONSTRAINT "settings must be a JSON object of at most 32 KiB" CHECK (
        settings IS NULL
        OR CASE WHEN json_valid(settings) THEN json_type(settings) = 'object' ELSE 0 END
        AND length(CAST(settings AS BLOB)) <= 32768),
    CONSTRAINT "disabled_reason must have at most 2000 bytes" CHECK (
        disabled_reason IS NULL OR length(CAST(disabled_reason AS BLOB)) <= 2000),
    CONSTRAINT "disabled_at must be in milliseconds since 1970" CHECK (
        disabled_at IS NULL OR disabled_at BETWEEN 100000000000 AND 253402300799999),
    CONSTRAINT "created_at must be in milliseconds since 1970" CHECK (
        created_at BETWEEN 100000000000 AND 253402300799999),
    CONSTRAINT "updated_at must be in milliseconds since 1970" CHECK (
        updated_at BETWEEN 100000000000 AND 253402300799999)
) STRICT, WITHOUT ROWID;

-- Apart, so that what shows destinations need not touch what can sign in their name.
CREATE TABLE outbox_destination_secret (
    secret_id   INTEGER PRIMARY KEY AUTOINCREMENT,
    destination TEXT NOT NULL,
    secret      TEXT NOT NULL,
    created_at  INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000.0 + 0.5 AS INTEGER)),
    expires_at  INTEGER,

    CONSTRAINT "secret must have 1 to 512 bytes" CHECK (length(CAST(secret AS BLOB)) BETWEEN 1 AND 512),
    CONSTRAINT "created_at must be in milliseconds since 1970" CHECK (
        created_at BETWEEN 100000000000 AND 253402300799999),
    CONSTRAINT "expires_at must be in milliseconds since 1970" CHECK (
        expires_at IS NULL OR expires_at BETWEEN 100000000000 AND 253402300799999)
) STRICT;

CREATE INDEX outbox_destination_secret_destination ON outbox_destination_secret (destination, secret_id);

CREATE TABLE outbox_destination_version (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
    version  INTEGER NOT NULL
) STRICT;
INSERT INTO outbox_destination_version (only_row, version) VALUES (1, 1);

CREATE TRIGGER outbox_destination_inserted AFTER INSERT ON outbox_destination BEGIN
    UPDATE outbox_destination_version SET version = version + 1;
END;

-- Without foreign keys, which a connection has to ask for.
CREATE TRIGGER outbox_destination_deleted AFTER DELETE ON outbox_destination BEGIN
    DELETE FROM outbox_destination_secret WHERE destination = OLD.name;
    UPDATE outbox_destination_version SET version = version + 1;
END;

CREATE TRIGGER outbox_destination_changed
AFTER UPDATE OF name, settings, disabled_at, disabled_reason ON outbox_destination BEGIN
    UPDATE outbox_destination_secret SET destination = NEW.name
    WHERE destination = OLD.name AND OLD.name <> NEW.name;
    UPDATE outbox_destination
    SET updated_at = CAST((julianday('now') - 2440587.5) * 86400000.0 + 0.5 AS INTEGER)
    WHERE name = NEW.name;
    UPDATE outbox_destination_version SET version = version + 1;
END;

CREATE TRIGGER outbox_destination_secret_inserted AFTER INSERT ON outbox_destination_secret BEGIN
    SELECT RAISE(ABORT, 'outbox_destination_secret: there is no destination of this name')
    WHERE NOT EXISTS (SELECT 1 FROM outbox_destination WHERE name = NEW.destination);
    UPDATE outbox_destination_version SET version = version + 1;
END;

CREATE TRIGGER outbox_destination_secret_changed AFTER UPDATE ON outbox_destination_secret BEGIN
    UPDATE outbox_destination_version SET version = version + 1;
END;

CREATE TRIGGER outbox_destination_secret_deleted AFTER DELETE ON outbox_destination_secret BEGIN
    UPDATE outbox_destination_version SET version = version + 1;
END;

-- What a relay tells of the destinations that it works with.
ALTER TABLE outbox_relay ADD COLUMN destinations_version INTEGER NOT NULL DEFAULT 0;
ALTER TABLE outbox_relay ADD COLUMN blocked TEXT NOT NULL DEFAULT '{"count": 0, "destinations": []}';
