-- Heads that are not at the front any more, since something before them is to be sent again.
UPDATE outbox_delivery
SET state = 'waiting'
WHERE lane_id = :lane_id AND destination = :destination AND state IN ('retry', 'held') AND outbox_id > :front
