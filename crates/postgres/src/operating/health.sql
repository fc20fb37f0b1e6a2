SELECT clock_timestamp(), h.lag_seconds, h.oldest_event, h.pending, h.in_flight, h.struggling, h.dead, h.unrouted
FROM @.outbox_health h
