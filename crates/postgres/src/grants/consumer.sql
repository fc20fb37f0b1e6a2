-- Accepts events, and can neither read nor change what was accepted.
GRANT EXECUTE ON FUNCTION @.inbox_accept(text, uuid), @.inbox_accept(text, uuid, text, text, bigint) TO @role;
