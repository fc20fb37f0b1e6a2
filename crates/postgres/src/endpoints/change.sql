-- New settings, unless somebody else has changed them since they were read.
UPDATE @.outbox_destination
SET settings = $3::json
WHERE name = $1 AND settings::text = $2
RETURNING name
