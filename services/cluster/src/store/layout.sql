-- Every mutation of every object. An object's text is here once and nowhere else.
CREATE TABLE IF NOT EXISTS revisions (
    rv        INTEGER PRIMARY KEY,
    change    INTEGER NOT NULL,  -- 0 added, 1 modified, 2 deleted
    resource  TEXT    NOT NULL,  -- plural.group, or the plural alone in the core group
    namespace TEXT    NOT NULL,  -- empty for cluster scope
    name      TEXT    NOT NULL,
    previous  INTEGER,           -- the revision that this one replaced
    object    TEXT    NOT NULL
);
CREATE INDEX IF NOT EXISTS revisions_by_key ON revisions (resource, namespace, name, rv);

-- The current revision of each object that exists.
CREATE TABLE IF NOT EXISTS live (
    resource  TEXT    NOT NULL,
    namespace TEXT    NOT NULL,
    name      TEXT    NOT NULL,
    rv        INTEGER NOT NULL,
    uid       TEXT    NOT NULL,
    PRIMARY KEY (resource, namespace, name)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS live_by_uid ON live (uid);
CREATE INDEX IF NOT EXISTS live_by_namespace ON live (namespace, resource);

-- Which live object names which owner: the edges that garbage collection follows.
CREATE TABLE IF NOT EXISTS owners (
    owner_uid TEXT NOT NULL,
    resource  TEXT NOT NULL,
    namespace TEXT NOT NULL,
    name      TEXT NOT NULL,
    PRIMARY KEY (owner_uid, resource, namespace, name)
) WITHOUT ROWID;

-- One row: history is complete after `floor`; `newest` is the last resource version given out.
CREATE TABLE IF NOT EXISTS position (
    id     INTEGER PRIMARY KEY CHECK (id = 0),
    floor  INTEGER NOT NULL,
    newest INTEGER NOT NULL
);
INSERT OR IGNORE INTO position (id, floor, newest) VALUES (0, 0, 0);
