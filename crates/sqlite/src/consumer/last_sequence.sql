SELECT last_seq FROM inbox_sequence WHERE consumer = ?1 AND aggregate_type = ?2 AND aggregate_id = ?3
