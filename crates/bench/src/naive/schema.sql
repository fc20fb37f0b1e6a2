CREATE TABLE naive_outbox (
    id              bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event_id        uuid        NOT NULL UNIQUE,
    aggregate_type  text        NOT NULL,
    aggregate_id    text        NOT NULL,
    aggregate_seq   bigint      NOT NULL,
    event_type      text        NOT NULL,
    payload         jsonb       NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT now(),
    status          text        NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'sent', 'dead')),
    attempts        integer     NOT NULL DEFAULT 0,
    locked_until    timestamptz,
    sent_at         timestamptz,
    last_error      text,
    UNIQUE (aggregate_type, aggregate_id, aggregate_seq)
);

CREATE INDEX naive_outbox_pending ON naive_outbox (id) WHERE status = 'pending';
