-- The newest resume token that was shown; those before it do not count. Until now, only the newest one did.
ALTER TABLE run ADD COLUMN token_shown INTEGER NOT NULL DEFAULT 0;
UPDATE run SET token_shown = token_generation;
