-- What a destination tells later of the messages it took, one row per message and status: no recipient, no payload.
-- outbox_id is the event's id, null when no event was known for it; external_id is the name in the receipt.
CREATE TABLE outbox_report (
    external_id TEXT NOT NULL,
    status      TEXT NOT NULL CHECK (status IN ('sent', 'failed', 'delivered', 'read')),
    reported_at INTEGER NOT NULL,
    received_at INTEGER NOT NULL,
    outbox_id   INTEGER,
    attempt     INTEGER,
    error_code  INTEGER,
    error       TEXT,
    PRIMARY KEY (external_id, status)
) STRICT, WITHOUT ROWID;

CREATE INDEX outbox_report_event ON outbox_report (outbox_id);
CREATE INDEX outbox_report_unmatched ON outbox_report (received_at) WHERE outbox_id IS NULL;
-- Receipts of webhooks have no name and are not in it.
CREATE INDEX outbox_delivery_external_id ON outbox_delivery (external_id) WHERE external_id IS NOT NULL;
