-- How many heartbeats of the older relays, and then of the newcomer, it took to give the newcomer its share: of each older
-- one, those from the join until it handed something back; of the newcomer, those from the last hand-back until it took.
WITH joined AS (
    SELECT max(id) AS id FROM story WHERE what = 'joined'
), newcomer AS (
    SELECT relay FROM story JOIN joined USING (id)
), handed AS (
    SELECT relay, min(story.id) AS first, max(story.id) AS last
    FROM story, joined WHERE what = 'handed back' AND story.id > joined.id GROUP BY relay
)
SELECT
    (SELECT max(beats) FROM (
        SELECT count(*) AS beats FROM story JOIN handed USING (relay), joined
        WHERE what = 'renewed' AND story.id > joined.id AND story.id < handed.first GROUP BY relay) AS of_each)
    || ' '
    || (SELECT count(*) FROM story JOIN newcomer USING (relay)
        WHERE what = 'renewed' AND id > (SELECT max(last) FROM handed)
            AND id < (SELECT max(story.id) FROM story JOIN newcomer USING (relay) WHERE what = 'taken'))
