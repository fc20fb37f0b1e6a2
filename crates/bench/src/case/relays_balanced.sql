-- Whether so many relays own all shards between them and none owns more than its fair share.
SELECT count(*) = $1 AND sum(share.shards) = 64 AND max(share.shards) <= ceil(64.0 / $1)
FROM (SELECT count(*) AS shards FROM outbox_shard s WHERE s.owner IS NOT NULL GROUP BY s.owner) AS share
