SELECT d.outbox_id, e.event_id, e.event_type, e.aggregate_type, e.aggregate_id, e.aggregate_seq, d.destination,
    d.state, d.attempts, d.replays, d.begun, d.next_attempt_at, d.sent_at, d.status, d.external_id, d.last_error, d.history
