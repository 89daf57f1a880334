-- The kind of `run.sql` as the reference implementation's schema file has its kinds: rows by uid, short texts that
-- compare without regard to case, times in seconds.
CREATE TABLE IF NOT EXISTS `run` (
    `uid` VARCHAR(255) NOT NULL,
    `group_ver` VARCHAR(255) NOT NULL,
    `namespace` VARCHAR(255) NOT NULL,
    `name` VARCHAR(255) NOT NULL,
    `res_version` BIGINT UNSIGNED NOT NULL,
    `create_time` DATETIME NOT NULL,
    `update_time` DATETIME,
    `delete_time` DATETIME,
    `proto` MEDIUMBLOB,
    `json` JSON,
    `pipeline_namespace` VARCHAR(255),
    `pipeline_name` VARCHAR(255),
    `state` VARCHAR(255),
    `end_time` DATETIME,
    PRIMARY KEY (`uid`),
    KEY `run_namespace_name` (`namespace`, `name`),
    KEY `run_create_time` (`create_time`),
    KEY `run_pipeline` (`pipeline_namespace`, `pipeline_name`),
    KEY `run_state` (`state`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;
CREATE TABLE IF NOT EXISTS `run_labels` (
    `id` BIGINT NOT NULL AUTO_INCREMENT,
    `obj_uid` VARCHAR(255) NOT NULL,
    `key` VARCHAR(255) NOT NULL,
    `value` VARCHAR(63),
    PRIMARY KEY (`id`),
    KEY `run_labels_uid` (`obj_uid`),
    KEY `run_labels_key_value` (`key`, `value`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;
CREATE TABLE IF NOT EXISTS `run_annotations` (
    `id` BIGINT NOT NULL AUTO_INCREMENT,
    `obj_uid` VARCHAR(255) NOT NULL,
    `key` VARCHAR(255) NOT NULL,
    `value` TEXT,
    PRIMARY KEY (`id`),
    KEY `run_annotations_uid` (`obj_uid`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;
