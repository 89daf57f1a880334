-- A kind of fixed shape, in the form that the generator emits: figures compare across
-- changes of crds.toml.
CREATE TABLE IF NOT EXISTS `run` (
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
    `pipeline_namespace` VARCHAR(255),
    `pipeline_name` VARCHAR(255),
    `state` VARCHAR(255),
    `end_time` DATETIME(6),
    `evicted_time` DATETIME(6),
    `content_hash` BINARY(32),
    `seq` BIGINT NOT NULL AUTO_INCREMENT,
    PRIMARY KEY (`seq`),
    UNIQUE KEY `run_uid` (`uid`),
    KEY `run_namespace_name` (`namespace`, `name`, `uid`),
    KEY `run_create_time` (`create_time`, `uid`),
    KEY `run_delete_time` (`delete_time`, `uid`),
    KEY `run_pipeline` (`pipeline_namespace`, `pipeline_name`, `uid`),
    KEY `run_state` (`state`, `uid`),
    CONSTRAINT `run_json` CHECK (LEFT(`content_hash`, 16) <=> UNHEX(LEFT(SHA2(`json`, 256), 32)) OR JSON_VALID(`json`))
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE IF NOT EXISTS `run_labels` (
    `id` BIGINT NOT NULL AUTO_INCREMENT,
    `obj_uid` VARCHAR(64) NOT NULL,
    `key` VARCHAR(317) NOT NULL,
    `value` VARCHAR(63),
    PRIMARY KEY (`id`),
    KEY `run_labels_uid` (`obj_uid`),
    KEY `run_labels_key_value` (`key`, `value`, `obj_uid`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE IF NOT EXISTS `run_annotations` (
    `id` BIGINT NOT NULL AUTO_INCREMENT,
    `obj_uid` VARCHAR(64) NOT NULL,
    `key` VARCHAR(317) NOT NULL,
    `value` MEDIUMTEXT,
    PRIMARY KEY (`id`),
    KEY `run_annotations_uid` (`obj_uid`)
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
