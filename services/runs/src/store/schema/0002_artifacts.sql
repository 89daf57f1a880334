-- Uploads, and artifacts, which are the finalized ones. The file of one is found by its id and MD5.
CREATE TABLE upload (
  upload_no INTEGER PRIMARY KEY AUTOINCREMENT,
  upload_id TEXT NOT NULL UNIQUE,
  run_no INTEGER NOT NULL,
  name TEXT NOT NULL,
  type INTEGER NOT NULL,
  mime_type TEXT NOT NULL,
  step INTEGER,
  -- 1 open, 2 finalized, 3 dropped: its files are to be deleted, and then the row
  state INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  finalized_at INTEGER,
  -- As announced, and after it was finalized as it is
  size_bytes INTEGER NOT NULL,
  md5 BLOB
) STRICT;
CREATE INDEX upload_open ON upload (run_no) WHERE state = 1;
CREATE INDEX upload_unfinished ON upload (created_at) WHERE state <> 2;
CREATE INDEX artifact_by_name ON upload (run_no, name, upload_no) WHERE state = 2;
