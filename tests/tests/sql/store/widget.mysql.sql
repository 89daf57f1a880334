-- The tables of two kinds, the second of which keeps its versions; see `widget.sqlite.sql` for the same in SQLite.
CREATE TABLE IF NOT EXISTS `widget` (
    `uid` VARCHAR(64) NOT NULL,
    `group_ver` VARCHAR(255) NOT NULL,
    `namespace` VARCHAR(255) NOT NULL,
    `name` VARCHAR(255) NOT NULL,
    `res_version` BIGINT UNSIGNED NOT NULL,
    `create_time` DATETIME(6) NOT NULL,
    `update_time` DATETIME(6),
    `delete_time` DATETIME(6),
    `proto` LONGBLOB,
    `json` LONGTEXT NOT NULL,
    `group` VARCHAR(64),
    `order` INT,
    `key` BIGINT,
    `rank` DOUBLE,
    `ready` BOOLEAN,
    `end_time` DATETIME(6),
    `size` BIGINT UNSIGNED,
    `evicted_time` DATETIME(6),
    `content_hash` BINARY(32),
    `seq` BIGINT NOT NULL AUTO_INCREMENT,
    PRIMARY KEY (`seq`),
    UNIQUE KEY `widget_uid` (`uid`),
    KEY `widget_namespace_name` (`namespace`, `name`, `uid`),
    KEY `widget_create_time` (`create_time`, `uid`),
    KEY `widget_delete_time` (`delete_time`, `uid`),
    KEY `widget_size` (`size`, `uid`),
    CONSTRAINT `widget_json` CHECK (LEFT(`content_hash`, 16) <=> UNHEX(LEFT(SHA2(`json`, 256), 32)) OR JSON_VALID(`json`))
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE IF NOT EXISTS `widget_labels` (
    `id` BIGINT NOT NULL AUTO_INCREMENT,
    `obj_uid` VARCHAR(64) NOT NULL,
    `key` VARCHAR(317) NOT NULL,
    `value` VARCHAR(63),
    PRIMARY KEY (`id`),
    KEY `widget_labels_uid` (`obj_uid`),
    KEY `widget_labels_key_value` (`key`, `value`, `obj_uid`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE IF NOT EXISTS `widget_annotations` (
    `id` BIGINT NOT NULL AUTO_INCREMENT,
    `obj_uid` VARCHAR(64) NOT NULL,
    `key` VARCHAR(317) NOT NULL,
    `value` MEDIUMTEXT,
    PRIMARY KEY (`id`),
    KEY `widget_annotations_uid` (`obj_uid`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE IF NOT EXISTS `keepsake` (
    `uid` VARCHAR(64) NOT NULL,
    `group_ver` VARCHAR(255) NOT NULL,
    `namespace` VARCHAR(255) NOT NULL,
    `name` VARCHAR(255) NOT NULL,
    `res_version` BIGINT UNSIGNED NOT NULL,
    `create_time` DATETIME(6) NOT NULL,
    `update_time` DATETIME(6),
    `delete_time` DATETIME(6),
    `proto` LONGBLOB,
    `json` LONGTEXT NOT NULL,
    `group` VARCHAR(64),
    `order` INT,
    `key` BIGINT,
    `rank` DOUBLE,
    `ready` BOOLEAN,
    `end_time` DATETIME(6),
    `size` BIGINT UNSIGNED,
    `evicted_time` DATETIME(6),
    `content_hash` BINARY(32),
    `seq` BIGINT NOT NULL AUTO_INCREMENT,
    PRIMARY KEY (`seq`),
    UNIQUE KEY `keepsake_uid` (`uid`),
    KEY `keepsake_namespace_name` (`namespace`, `name`, `uid`),
    CONSTRAINT `keepsake_json` CHECK (LEFT(`content_hash`, 16) <=> UNHEX(LEFT(SHA2(`json`, 256), 32)) OR JSON_VALID(`json`))
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE IF NOT EXISTS `keepsake_labels` (
    `id` BIGINT NOT NULL AUTO_INCREMENT,
    `obj_uid` VARCHAR(64) NOT NULL,
    `key` VARCHAR(317) NOT NULL,
    `value` VARCHAR(63),
    PRIMARY KEY (`id`),
    KEY `keepsake_labels_uid` (`obj_uid`),
    KEY `keepsake_labels_key_value` (`key`, `value`, `obj_uid`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE IF NOT EXISTS `keepsake_annotations` (
    `id` BIGINT NOT NULL AUTO_INCREMENT,
    `obj_uid` VARCHAR(64) NOT NULL,
    `key` VARCHAR(317) NOT NULL,
    `value` MEDIUMTEXT,
    PRIMARY KEY (`id`),
    KEY `keepsake_annotations_uid` (`obj_uid`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE IF NOT EXISTS `keepsake_history` (
    `obj_uid` VARCHAR(64) NOT NULL,
    `branch` BIGINT NOT NULL,
    `res_version` BIGINT UNSIGNED NOT NULL,
    `seen_time` DATETIME(6) NOT NULL,
    `encoding` TINYINT NOT NULL,
    `payload` LONGBLOB NOT NULL,
    PRIMARY KEY (`obj_uid`, `branch`, `res_version`),
    KEY `keepsake_history_seen_time` (`seen_time`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE IF NOT EXISTS `kindex_schema` (
    `version` INT NOT NULL,
    `checksum` VARCHAR(64) NOT NULL,
    `applied_time` DATETIME(6) NOT NULL,
    PRIMARY KEY (`version`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE IF NOT EXISTS `kindex_migrations` (
    `number` INT NOT NULL,
    `name` VARCHAR(255) NOT NULL,
    `checksum` VARCHAR(64) NOT NULL,
    `compatible` INT NOT NULL,
    `steps_done` INT NOT NULL,
    `fill_after` BIGINT,
    `begin_time` DATETIME(6) NOT NULL,
    `finish_time` DATETIME(6),
    PRIMARY KEY (`number`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE IF NOT EXISTS `kindex_checkpoint` (
    `kind` VARCHAR(255) NOT NULL,
    `res_version` BIGINT UNSIGNED NOT NULL,
    `update_time` DATETIME(6) NOT NULL,
    PRIMARY KEY (`kind`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE IF NOT EXISTS `kindex_quarantine` (
    `kind` VARCHAR(255) NOT NULL,
    `uid` VARCHAR(64) NOT NULL,
    `namespace` VARCHAR(255) NOT NULL,
    `name` VARCHAR(255) NOT NULL,
    `res_version` BIGINT UNSIGNED NOT NULL,
    `reason` TEXT NOT NULL,
    `json` LONGTEXT NOT NULL,
    `first_time` DATETIME(6) NOT NULL,
    `last_time` DATETIME(6) NOT NULL,
    `attempts` INT NOT NULL,
    PRIMARY KEY (`kind`, `uid`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE IF NOT EXISTS `kindex_state` (
    `kind` VARCHAR(255) NOT NULL,
    `name` VARCHAR(255) NOT NULL,
    `value` MEDIUMTEXT NOT NULL,
    `update_time` DATETIME(6) NOT NULL,
    PRIMARY KEY (`kind`, `name`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE IF NOT EXISTS `kindex_converted` (
    `kind` VARCHAR(255) NOT NULL,
    `uid` VARCHAR(64) NOT NULL,
    `group_ver` VARCHAR(255) NOT NULL,
    `res_version` BIGINT UNSIGNED NOT NULL,
    `convert_time` DATETIME(6) NOT NULL,
    `encoding` INT NOT NULL,
    `payload` LONGBLOB NOT NULL,
    PRIMARY KEY (`kind`, `uid`, `group_ver`, `res_version`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE IF NOT EXISTS `kindex_feed` (
    `kind` VARCHAR(255) NOT NULL,
    `position` BIGINT NOT NULL,
    PRIMARY KEY (`kind`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE IF NOT EXISTS `kindex_changes` (
    `kind` VARCHAR(255) NOT NULL,
    `position` BIGINT NOT NULL,
    `uid` VARCHAR(64) NOT NULL,
    `labels` MEDIUMTEXT,
    `cluster_version` BIGINT UNSIGNED,
    `change_time` DATETIME(6) NOT NULL,
    PRIMARY KEY (`kind`, `position`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE IF NOT EXISTS `kindex_reference` (
    `kind` VARCHAR(255) NOT NULL,
    `uid` VARCHAR(64) NOT NULL,
    `name` VARCHAR(317) NOT NULL,
    `holder_kind` VARCHAR(255) NOT NULL,
    `holder_group` VARCHAR(255) NOT NULL,
    `holder_uid` VARCHAR(64) NOT NULL,
    `place_time` DATETIME(6) NOT NULL,
    `placed_by` TEXT,
    PRIMARY KEY (`kind`, `uid`, `name`),
    KEY `kindex_reference_holder` (`holder_uid`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE IF NOT EXISTS `kindex_tombstone` (
    `kind` VARCHAR(255) NOT NULL,
    `uid` VARCHAR(64) NOT NULL,
    `request_time` DATETIME(6) NOT NULL,
    PRIMARY KEY (`kind`, `uid`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE IF NOT EXISTS `kindex_outbox` (
    `kind` VARCHAR(255) NOT NULL,
    `uid` VARCHAR(64) NOT NULL,
    `position` BIGINT NOT NULL,
    `namespace` VARCHAR(255) NOT NULL,
    `name` VARCHAR(255) NOT NULL,
    `deletion_timestamp` DATETIME(6),
    `erase_time` DATETIME(6),
    PRIMARY KEY (`kind`, `uid`),
    KEY `kindex_outbox_position` (`kind`, `position`),
    KEY `kindex_outbox_erase_time` (`kind`, `erase_time`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE IF NOT EXISTS `kindex_outbox_mark` (
    `kind` VARCHAR(255) NOT NULL,
    `position` BIGINT NOT NULL,
    `stamp` BIGINT NOT NULL,
    `mark_time` DATETIME(6) NOT NULL,
    PRIMARY KEY (`kind`, `position`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE IF NOT EXISTS `kindex_outbox_counter` (
    `kind` VARCHAR(255) NOT NULL,
    `position` BIGINT NOT NULL,
    `fill_after` BIGINT,
    `fill_time` DATETIME(6),
    PRIMARY KEY (`kind`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
