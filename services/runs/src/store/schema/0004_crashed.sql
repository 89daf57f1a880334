-- Crashed runs get the last encoding of their chunks too, once nobody can resume them.
CREATE INDEX run_crashed_unsealed ON run (last_seen_at) WHERE is_sealed = 0 AND status = 4;
