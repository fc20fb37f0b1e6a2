-- Takes in reports on messages, and can read and change nothing otherwise.
GRANT SELECT ON @.outbox_schema TO @role;
GRANT EXECUTE ON FUNCTION @.outbox_take_in_reports TO @role;
