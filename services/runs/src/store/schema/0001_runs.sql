-- Times are nanoseconds since the epoch. Floating point values are kept as bits: REAL has no NaN and no -0.0.
CREATE TABLE run (
  run_no INTEGER PRIMARY KEY AUTOINCREMENT,
  run_id TEXT NOT NULL UNIQUE,
  project TEXT NOT NULL,
  name TEXT NOT NULL,
  description TEXT NOT NULL,
  -- 1 running, 2 finished, 3 failed, 4 crashed, 5 killed
  status INTEGER NOT NULL,
  user TEXT NOT NULL,
  parent_run_id TEXT,
  -- Messages SystemInfo and GitInfo of mlrun.v1
  system_info BLOB,
  git_info BLOB,
  created_at INTEGER NOT NULL,
  last_seen_at INTEGER NOT NULL,
  finished_at INTEGER,
  exit_code INTEGER,
  error_message TEXT,
  -- The sequence that is applied next
  sequence_next INTEGER NOT NULL,
  -- Of the newest resume token
  token_generation INTEGER NOT NULL,
  -- points_accepted = accepted of all rows in batch + points_forgotten
  points_accepted INTEGER NOT NULL DEFAULT 0,
  points_forgotten INTEGER NOT NULL DEFAULT 0,
  -- points_compacted = accepted of compacted rows in batch + points_forgotten = n of all rows in chunk + points_replaced
  points_compacted INTEGER NOT NULL DEFAULT 0,
  points_replaced INTEGER NOT NULL DEFAULT 0,
  -- Finalized artifacts
  artifacts INTEGER NOT NULL DEFAULT 0,
  -- Whether the chunks have their last encoding
  is_sealed INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX run_by_project ON run (project, created_at, run_no);
CREATE INDEX run_running ON run (project) WHERE status = 1;
CREATE INDEX run_seen ON run (last_seen_at) WHERE status = 1;
CREATE INDEX run_unsealed ON run (run_no) WHERE is_sealed = 0 AND status IN (2, 3, 5);

CREATE TABLE metric_name (
  run_no INTEGER NOT NULL,
  metric_no INTEGER NOT NULL,
  name TEXT NOT NULL,
  PRIMARY KEY (run_no, metric_no),
  UNIQUE (run_no, name)
) STRICT, WITHOUT ROWID;

-- The ledger: a row for each batch that was answered.
CREATE TABLE batch (
  arrival_no INTEGER PRIMARY KEY AUTOINCREMENT,
  -- The last write of a step is the one with the highest; NULL while the batch is held
  apply_ordinal INTEGER,
  run_no INTEGER NOT NULL,
  -- 16 bytes of a UUID, or text
  batch_id ANY NOT NULL,
  payload_hash BLOB NOT NULL,
  sequence INTEGER,
  -- 1 held, 2 applied, 3 compacted
  state INTEGER NOT NULL,
  received_at INTEGER NOT NULL,
  accepted INTEGER NOT NULL,
  dropped INTEGER NOT NULL,
  body BLOB,
  UNIQUE (run_no, batch_id)
) STRICT;
CREATE INDEX batch_held ON batch (run_no, sequence, arrival_no, received_at) WHERE state = 1;
CREATE INDEX batch_applied ON batch (run_no, apply_ordinal, accepted) WHERE state = 2;
CREATE INDEX batch_received ON batch (received_at) WHERE state = 3;

-- Points of one metric; chunks of a metric have no steps in common.
CREATE TABLE chunk (
  chunk_no INTEGER PRIMARY KEY,
  run_no INTEGER NOT NULL,
  metric_no INTEGER NOT NULL,
  step_min INTEGER NOT NULL,
  step_max INTEGER NOT NULL,
  time_min INTEGER NOT NULL,
  time_max INTEGER NOT NULL,
  n INTEGER NOT NULL,
  n_finite INTEGER NOT NULL,
  min_bits INTEGER NOT NULL,
  max_bits INTEGER NOT NULL,
  sum_bits INTEGER NOT NULL,
  first_bits INTEGER NOT NULL,
  last_bits INTEGER NOT NULL,
  apply_ordinal_max INTEGER NOT NULL,
  body BLOB NOT NULL,
  UNIQUE (run_no, metric_no, step_min)
) STRICT;

CREATE TABLE param (
  run_no INTEGER NOT NULL,
  name TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (run_no, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE tag (
  run_no INTEGER NOT NULL,
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (run_no, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE summary (
  run_no INTEGER NOT NULL,
  name TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (run_no, name)
) STRICT, WITHOUT ROWID;

-- Runs that were deleted and whose rows in other tables are still to go.
CREATE TABLE deleted_run (
  run_no INTEGER PRIMARY KEY
) STRICT;

-- The highest ordinal that was given, so that none is given twice where the rows are gone.
CREATE TABLE counter (
  name TEXT PRIMARY KEY,
  value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
