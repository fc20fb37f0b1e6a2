INSERT INTO inbox_sequence (consumer, aggregate_type, aggregate_id, last_seq)
VALUES (:consumer, :aggregate_type, :aggregate_id, :sequence)
ON CONFLICT (consumer, aggregate_type, aggregate_id) DO UPDATE SET last_seq = max(last_seq, excluded.last_seq)
