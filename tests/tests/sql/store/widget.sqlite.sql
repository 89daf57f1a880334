-- The tables of two kinds, the second of which keeps its versions; see `widget.mysql.sql` for the same in MySQL.
CREATE TABLE IF NOT EXISTS `widget` (
    `uid` TEXT NOT NULL,
    `group_ver` TEXT NOT NULL,
    `namespace` TEXT NOT NULL,
    `name` TEXT NOT NULL,
    `res_version` INTEGER NOT NULL,
    `create_time` TEXT NOT NULL,
    `update_time` TEXT,
    `delete_time` TEXT,
    `proto` BLOB,
    `json` TEXT NOT NULL CHECK (json_valid(`json`)),
    `group` TEXT,
    `order` INTEGER,
    `key` INTEGER,
    `rank` REAL,
    `ready` INTEGER,
    `end_time` TEXT,
    `size` ANY,
    `evicted_time` TEXT,
    `content_hash` BLOB,
    `seq` INTEGER NOT NULL PRIMARY KEY
) STRICT;
CREATE UNIQUE INDEX IF NOT EXISTS `widget_uid` ON `widget` (`uid`);
CREATE INDEX IF NOT EXISTS `widget_namespace_name` ON `widget` (`namespace`, `name`, `uid`);
CREATE INDEX IF NOT EXISTS `widget_create_time` ON `widget` (`create_time`, `uid`);
CREATE INDEX IF NOT EXISTS `widget_delete_time` ON `widget` (`delete_time`, `uid`);
CREATE INDEX IF NOT EXISTS `widget_size` ON `widget` (`size`, `uid`);
CREATE TABLE IF NOT EXISTS `widget_labels` (
    `id` INTEGER NOT NULL PRIMARY KEY,
    `obj_uid` TEXT NOT NULL,
    `key` TEXT NOT NULL,
    `value` TEXT
) STRICT;
CREATE INDEX IF NOT EXISTS `widget_labels_uid` ON `widget_labels` (`obj_uid`);
CREATE INDEX IF NOT EXISTS `widget_labels_key_value` ON `widget_labels` (`key`, `value`, `obj_uid`);
CREATE TABLE IF NOT EXISTS `widget_annotations` (
    `id` INTEGER NOT NULL PRIMARY KEY,
    `obj_uid` TEXT NOT NULL,
    `key` TEXT NOT NULL,
    `value` TEXT
) STRICT;
CREATE INDEX IF NOT EXISTS `widget_annotations_uid` ON `widget_annotations` (`obj_uid`);
CREATE TABLE IF NOT EXISTS `keepsake` (
    `uid` TEXT NOT NULL,
    `group_ver` TEXT NOT NULL,
    `namespace` TEXT NOT NULL,
    `name` TEXT NOT NULL,
    `res_version` INTEGER NOT NULL,
    `create_time` TEXT NOT NULL,
    `update_time` TEXT,
    `delete_time` TEXT,
    `proto` BLOB,
    `json` TEXT NOT NULL CHECK (json_valid(`json`)),
    `group` TEXT,
    `order` INTEGER,
    `key` INTEGER,
    `rank` REAL,
    `ready` INTEGER,
    `end_time` TEXT,
    `size` ANY,
    `evicted_time` TEXT,
    `content_hash` BLOB,
    `seq` INTEGER NOT NULL PRIMARY KEY
) STRICT;
CREATE UNIQUE INDEX IF NOT EXISTS `keepsake_uid` ON `keepsake` (`uid`);
CREATE INDEX IF NOT EXISTS `keepsake_namespace_name` ON `keepsake` (`namespace`, `name`, `uid`);
CREATE TABLE IF NOT EXISTS `keepsake_labels` (
    `id` INTEGER NOT NULL PRIMARY KEY,
    `obj_uid` TEXT NOT NULL,
    `key` TEXT NOT NULL,
    `value` TEXT
) STRICT;
CREATE INDEX IF NOT EXISTS `keepsake_labels_uid` ON `keepsake_labels` (`obj_uid`);
CREATE INDEX IF NOT EXISTS `keepsake_labels_key_value` ON `keepsake_labels` (`key`, `value`, `obj_uid`);
CREATE TABLE IF NOT EXISTS `keepsake_annotations` (
    `id` INTEGER NOT NULL PRIMARY KEY,
    `obj_uid` TEXT NOT NULL,
    `key` TEXT NOT NULL,
    `value` TEXT
) STRICT;
CREATE INDEX IF NOT EXISTS `keepsake_annotations_uid` ON `keepsake_annotations` (`obj_uid`);
CREATE TABLE IF NOT EXISTS `keepsake_history` (
    `obj_uid` TEXT NOT NULL,
    `branch` INTEGER NOT NULL,
    `res_version` INTEGER NOT NULL,
    `seen_time` TEXT NOT NULL,
    `encoding` INTEGER NOT NULL,
    `payload` BLOB NOT NULL,
    PRIMARY KEY (`obj_uid`, `branch`, `res_version`)
) STRICT;
CREATE INDEX IF NOT EXISTS `keepsake_history_seen_time` ON `keepsake_history` (`seen_time`);
CREATE TABLE IF NOT EXISTS `kindex_schema` (
    `version` INTEGER NOT NULL,
    `checksum` TEXT NOT NULL,
    `applied_time` TEXT NOT NULL,
    PRIMARY KEY (`version`)
) STRICT;
CREATE TABLE IF NOT EXISTS `kindex_migrations` (
    `number` INTEGER NOT NULL,
    `name` TEXT NOT NULL,
    `checksum` TEXT NOT NULL,
    `compatible` INTEGER NOT NULL,
    `steps_done` INTEGER NOT NULL,
    `fill_after` INTEGER,
    `begin_time` TEXT NOT NULL,
    `finish_time` TEXT,
    PRIMARY KEY (`number`)
) STRICT;
CREATE TABLE IF NOT EXISTS `kindex_checkpoint` (
    `kind` TEXT NOT NULL,
    `res_version` INTEGER NOT NULL,
    `update_time` TEXT NOT NULL,
    PRIMARY KEY (`kind`)
) STRICT;
CREATE TABLE IF NOT EXISTS `kindex_quarantine` (
    `kind` TEXT NOT NULL,
    `uid` TEXT NOT NULL,
    `namespace` TEXT NOT NULL,
    `name` TEXT NOT NULL,
    `res_version` INTEGER NOT NULL,
    `reason` TEXT NOT NULL,
    `json` TEXT NOT NULL,
    `first_time` TEXT NOT NULL,
    `last_time` TEXT NOT NULL,
    `attempts` INTEGER NOT NULL,
    PRIMARY KEY (`kind`, `uid`)
) STRICT;
CREATE TABLE IF NOT EXISTS `kindex_state` (
    `kind` TEXT NOT NULL,
    `name` TEXT NOT NULL,
    `value` TEXT NOT NULL,
    `update_time` TEXT NOT NULL,
    PRIMARY KEY (`kind`, `name`)
) STRICT;
CREATE TABLE IF NOT EXISTS `kindex_converted` (
    `kind` TEXT NOT NULL,
    `uid` TEXT NOT NULL,
    `group_ver` TEXT NOT NULL,
    `res_version` INTEGER NOT NULL,
    `convert_time` TEXT NOT NULL,
    `encoding` INTEGER NOT NULL,
    `payload` BLOB NOT NULL,
    PRIMARY KEY (`kind`, `uid`, `group_ver`, `res_version`)
) STRICT;
CREATE TABLE IF NOT EXISTS `kindex_feed` (
    `kind` TEXT NOT NULL,
    `position` INTEGER NOT NULL,
    PRIMARY KEY (`kind`)
) STRICT;
CREATE TABLE IF NOT EXISTS `kindex_changes` (
    `kind` TEXT NOT NULL,
    `position` INTEGER NOT NULL,
    `uid` TEXT NOT NULL,
    `labels` TEXT,
    `cluster_version` INTEGER,
    `change_time` TEXT NOT NULL,
    PRIMARY KEY (`kind`, `position`)
) STRICT;
CREATE TABLE IF NOT EXISTS `kindex_reference` (
    `kind` TEXT NOT NULL,
    `uid` TEXT NOT NULL,
    `name` TEXT NOT NULL,
    `holder_kind` TEXT NOT NULL,
    `holder_group` TEXT NOT NULL,
    `holder_uid` TEXT NOT NULL,
    `place_time` TEXT NOT NULL,
    `placed_by` TEXT,
    PRIMARY KEY (`kind`, `uid`, `name`)
) STRICT;
CREATE INDEX IF NOT EXISTS `kindex_reference_holder` ON `kindex_reference` (`holder_uid`);
CREATE TABLE IF NOT EXISTS `kindex_tombstone` (
    `kind` TEXT NOT NULL,
    `uid` TEXT NOT NULL,
    `request_time` TEXT NOT NULL,
    PRIMARY KEY (`kind`, `uid`)
) STRICT;
CREATE TABLE IF NOT EXISTS `kindex_outbox` (
    `kind` TEXT NOT NULL,
    `uid` TEXT NOT NULL,
    `position` INTEGER NOT NULL,
    `namespace` TEXT NOT NULL,
    `name` TEXT NOT NULL,
    `deletion_timestamp` TEXT,
    `erase_time` TEXT,
    PRIMARY KEY (`kind`, `uid`)
) STRICT;
CREATE INDEX IF NOT EXISTS `kindex_outbox_position` ON `kindex_outbox` (`kind`, `position`);
CREATE INDEX IF NOT EXISTS `kindex_outbox_erase_time` ON `kindex_outbox` (`kind`, `erase_time`);
CREATE TABLE IF NOT EXISTS `kindex_outbox_mark` (
    `kind` TEXT NOT NULL,
    `position` INTEGER NOT NULL,
    `stamp` INTEGER NOT NULL,
    `mark_time` TEXT NOT NULL,
    PRIMARY KEY (`kind`, `position`)
) STRICT;
CREATE TABLE IF NOT EXISTS `kindex_outbox_counter` (
    `kind` TEXT NOT NULL,
    `position` INTEGER NOT NULL,
    `fill_after` INTEGER,
    `fill_time` TEXT,
    PRIMARY KEY (`kind`)
) STRICT;
