-- The points of a batch until they are in chunks. Not in the ledger, whose rows stay: its pages would keep the room.
CREATE TABLE batch_body (
  arrival_no INTEGER PRIMARY KEY,
  body BLOB NOT NULL
) STRICT;
INSERT INTO batch_body (arrival_no, body) SELECT arrival_no, body FROM batch WHERE body IS NOT NULL;
ALTER TABLE batch DROP COLUMN body;
