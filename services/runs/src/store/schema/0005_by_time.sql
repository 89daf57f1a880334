-- The runs of all projects, the newest first: nothing is sorted for a page of them.
CREATE INDEX run_by_time ON run (created_at, run_no);
