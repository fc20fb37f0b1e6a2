-- Whether new events are announced.
SELECT EXISTS (
    SELECT FROM pg_trigger
    WHERE tgrelid = '@.outbox'::regclass AND tgname = 'outbox_announce' AND tgenabled <> 'D'
)
