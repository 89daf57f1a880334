-- 0001_initial
-- compatible: 1
--
-- Planned by `kindex plan`; `kindex migrate` takes the steps in order and can go on after any of them.

-- step: create-table project
CREATE TABLE IF NOT EXISTS `project` (
    `uid` VARCHAR(64) NOT NULL,
    `group_ver` VARCHAR(255) NOT NULL,
    `namespace` VARCHAR(255) NOT NULL,
    `name` VARCHAR(255) NOT NULL,
    `res_version` BIGINT UNSIGNED NOT NULL,
    `create_time` DATETIME(6) NOT NULL,
    `update_time` DATETIME(6),
    `delete_time` DATETIME(6),
    `proto` LONGBLOB,
    `json` LONGTEXT NOT NULL CHECK (`json` LIKE '{"%}' OR JSON_VALID(`json`)),
    `tier` INT,
    `evicted_time` DATETIME(6),
    `content_hash` BINARY(32),
    `seq` BIGINT NOT NULL AUTO_INCREMENT,
    PRIMARY KEY (`seq`),
    UNIQUE KEY `project_uid` (`uid`),
    KEY `project_namespace_name` (`namespace`, `name`, `uid`),
    KEY `project_create_time` (`create_time`, `uid`),
    KEY `project_delete_time` (`delete_time`, `uid`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- step: create-table project_labels
CREATE TABLE IF NOT EXISTS `project_labels` (
    `id` BIGINT NOT NULL AUTO_INCREMENT,
    `obj_uid` VARCHAR(64) NOT NULL,
    `key` VARCHAR(317) NOT NULL,
    `value` VARCHAR(63),
    PRIMARY KEY (`id`),
    KEY `project_labels_uid` (`obj_uid`),
    KEY `project_labels_key_value` (`key`, `value`, `obj_uid`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- step: create-table project_annotations
CREATE TABLE IF NOT EXISTS `project_annotations` (
    `id` BIGINT NOT NULL AUTO_INCREMENT,
    `obj_uid` VARCHAR(64) NOT NULL,
    `key` VARCHAR(317) NOT NULL,
    `value` MEDIUMTEXT,
    PRIMARY KEY (`id`),
    KEY `project_annotations_uid` (`obj_uid`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- step: create-table modelfamily
CREATE TABLE IF NOT EXISTS `modelfamily` (
    `uid` VARCHAR(64) NOT NULL,
    `group_ver` VARCHAR(255) NOT NULL,
    `namespace` VARCHAR(255) NOT NULL,
    `name` VARCHAR(255) NOT NULL,
    `res_version` BIGINT UNSIGNED NOT NULL,
    `create_time` DATETIME(6) NOT NULL,
    `update_time` DATETIME(6),
    `delete_time` DATETIME(6),
    `proto` LONGBLOB,
    `json` LONGTEXT NOT NULL CHECK (`json` LIKE '{"%}' OR JSON_VALID(`json`)),
    `model_family_name` VARCHAR(255),
    `evicted_time` DATETIME(6),
    `content_hash` BINARY(32),
    `seq` BIGINT NOT NULL AUTO_INCREMENT,
    PRIMARY KEY (`seq`),
    UNIQUE KEY `modelfamily_uid` (`uid`),
    KEY `modelfamily_namespace_name` (`namespace`, `name`, `uid`),
    KEY `modelfamily_create_time` (`create_time`, `uid`),
    KEY `modelfamily_delete_time` (`delete_time`, `uid`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- step: create-table modelfamily_labels
CREATE TABLE IF NOT EXISTS `modelfamily_labels` (
    `id` BIGINT NOT NULL AUTO_INCREMENT,
    `obj_uid` VARCHAR(64) NOT NULL,
    `key` VARCHAR(317) NOT NULL,
    `value` VARCHAR(63),
    PRIMARY KEY (`id`),
    KEY `modelfamily_labels_uid` (`obj_uid`),
    KEY `modelfamily_labels_key_value` (`key`, `value`, `obj_uid`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- step: create-table modelfamily_annotations
CREATE TABLE IF NOT EXISTS `modelfamily_annotations` (
    `id` BIGINT NOT NULL AUTO_INCREMENT,
    `obj_uid` VARCHAR(64) NOT NULL,
    `key` VARCHAR(317) NOT NULL,
    `value` MEDIUMTEXT,
    PRIMARY KEY (`id`),
    KEY `modelfamily_annotations_uid` (`obj_uid`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- step: create-table model
CREATE TABLE IF NOT EXISTS `model` (
    `uid` VARCHAR(64) NOT NULL,
    `group_ver` VARCHAR(255) NOT NULL,
    `namespace` VARCHAR(255) NOT NULL,
    `name` VARCHAR(255) NOT NULL,
    `res_version` BIGINT UNSIGNED NOT NULL,
    `create_time` DATETIME(6) NOT NULL,
    `update_time` DATETIME(6),
    `delete_time` DATETIME(6),
    `proto` LONGBLOB,
    `json` LONGTEXT NOT NULL CHECK (`json` LIKE '{"%}' OR JSON_VALID(`json`)),
    `algorithm` VARCHAR(255),
    `training_framework` VARCHAR(255),
    `owner` VARCHAR(255),
    `source` VARCHAR(255),
    `description` VARCHAR(768),
    `model_kind` VARCHAR(255),
    `package_type` VARCHAR(255),
    `revision_id` INT,
    `src_pipeline_run_namespace` VARCHAR(255),
    `src_pipeline_run_name` VARCHAR(255),
    `model_family_namespace` VARCHAR(255),
    `model_family_name` VARCHAR(255),
    `feature_eval_report_namespace` VARCHAR(255),
    `feature_eval_report_name` VARCHAR(255),
    `performance_eval_report_namespace` VARCHAR(255),
    `performance_eval_report_name` VARCHAR(255),
    `feature_quality_report_namespace` VARCHAR(255),
    `feature_quality_report_name` VARCHAR(255),
    `explainability_report_namespace` VARCHAR(255),
    `explainability_report_name` VARCHAR(255),
    `evicted_time` DATETIME(6),
    `content_hash` BINARY(32),
    `seq` BIGINT NOT NULL AUTO_INCREMENT,
    PRIMARY KEY (`seq`),
    UNIQUE KEY `model_uid` (`uid`),
    KEY `model_namespace_name` (`namespace`, `name`, `uid`),
    KEY `model_create_time` (`create_time`, `uid`),
    KEY `model_delete_time` (`delete_time`, `uid`),
    KEY `model_algorithm` (`algorithm`, `uid`),
    KEY `model_owner` (`owner`, `uid`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- step: create-table model_labels
CREATE TABLE IF NOT EXISTS `model_labels` (
    `id` BIGINT NOT NULL AUTO_INCREMENT,
    `obj_uid` VARCHAR(64) NOT NULL,
    `key` VARCHAR(317) NOT NULL,
    `value` VARCHAR(63),
    PRIMARY KEY (`id`),
    KEY `model_labels_uid` (`obj_uid`),
    KEY `model_labels_key_value` (`key`, `value`, `obj_uid`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- step: create-table model_annotations
CREATE TABLE IF NOT EXISTS `model_annotations` (
    `id` BIGINT NOT NULL AUTO_INCREMENT,
    `obj_uid` VARCHAR(64) NOT NULL,
    `key` VARCHAR(317) NOT NULL,
    `value` MEDIUMTEXT,
    PRIMARY KEY (`id`),
    KEY `model_annotations_uid` (`obj_uid`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- step: create-table model_history
CREATE TABLE IF NOT EXISTS `model_history` (
    `obj_uid` VARCHAR(64) NOT NULL,
    `branch` BIGINT NOT NULL,
    `res_version` BIGINT UNSIGNED NOT NULL,
    `seen_time` DATETIME(6) NOT NULL,
    `encoding` TINYINT NOT NULL,
    `payload` LONGBLOB NOT NULL,
    PRIMARY KEY (`obj_uid`, `branch`, `res_version`),
    KEY `model_history_seen_time` (`seen_time`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- step: create-table pipeline
CREATE TABLE IF NOT EXISTS `pipeline` (
    `uid` VARCHAR(64) NOT NULL,
    `group_ver` VARCHAR(255) NOT NULL,
    `namespace` VARCHAR(255) NOT NULL,
    `name` VARCHAR(255) NOT NULL,
    `res_version` BIGINT UNSIGNED NOT NULL,
    `create_time` DATETIME(6) NOT NULL,
    `update_time` DATETIME(6),
    `delete_time` DATETIME(6),
    `proto` LONGBLOB,
    `json` LONGTEXT NOT NULL CHECK (`json` LIKE '{"%}' OR JSON_VALID(`json`)),
    `owner` VARCHAR(255),
    `pipeline_type` VARCHAR(255),
    `evicted_time` DATETIME(6),
    `content_hash` BINARY(32),
    `seq` BIGINT NOT NULL AUTO_INCREMENT,
    PRIMARY KEY (`seq`),
    UNIQUE KEY `pipeline_uid` (`uid`),
    KEY `pipeline_namespace_name` (`namespace`, `name`, `uid`),
    KEY `pipeline_create_time` (`create_time`, `uid`),
    KEY `pipeline_delete_time` (`delete_time`, `uid`),
    KEY `pipeline_owner` (`owner`, `uid`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- step: create-table pipeline_labels
CREATE TABLE IF NOT EXISTS `pipeline_labels` (
    `id` BIGINT NOT NULL AUTO_INCREMENT,
    `obj_uid` VARCHAR(64) NOT NULL,
    `key` VARCHAR(317) NOT NULL,
    `value` VARCHAR(63),
    PRIMARY KEY (`id`),
    KEY `pipeline_labels_uid` (`obj_uid`),
    KEY `pipeline_labels_key_value` (`key`, `value`, `obj_uid`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- step: create-table pipeline_annotations
CREATE TABLE IF NOT EXISTS `pipeline_annotations` (
    `id` BIGINT NOT NULL AUTO_INCREMENT,
    `obj_uid` VARCHAR(64) NOT NULL,
    `key` VARCHAR(317) NOT NULL,
    `value` MEDIUMTEXT,
    PRIMARY KEY (`id`),
    KEY `pipeline_annotations_uid` (`obj_uid`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- step: create-table pipelinerun
CREATE TABLE IF NOT EXISTS `pipelinerun` (
    `uid` VARCHAR(64) NOT NULL,
    `group_ver` VARCHAR(255) NOT NULL,
    `namespace` VARCHAR(255) NOT NULL,
    `name` VARCHAR(255) NOT NULL,
    `res_version` BIGINT UNSIGNED NOT NULL,
    `create_time` DATETIME(6) NOT NULL,
    `update_time` DATETIME(6),
    `delete_time` DATETIME(6),
    `proto` LONGBLOB,
    `json` LONGTEXT NOT NULL CHECK (`json` LIKE '{"%}' OR JSON_VALID(`json`)),
    `pipeline_namespace` VARCHAR(255),
    `pipeline_name` VARCHAR(255),
    `revision_namespace` VARCHAR(255),
    `revision_name` VARCHAR(255),
    `resume_pipeline_run_namespace` VARCHAR(255),
    `resume_pipeline_run_name` VARCHAR(255),
    `state` VARCHAR(255),
    `actor` VARCHAR(255),
    `end_time` DATETIME(6),
    `exception_type` VARCHAR(255),
    `evicted_time` DATETIME(6),
    `content_hash` BINARY(32),
    `seq` BIGINT NOT NULL AUTO_INCREMENT,
    PRIMARY KEY (`seq`),
    UNIQUE KEY `pipelinerun_uid` (`uid`),
    KEY `pipelinerun_namespace_name` (`namespace`, `name`, `uid`),
    KEY `pipelinerun_create_time` (`create_time`, `uid`),
    KEY `pipelinerun_delete_time` (`delete_time`, `uid`),
    KEY `pipelinerun_pipeline` (`pipeline_namespace`, `pipeline_name`, `uid`),
    KEY `pipelinerun_state` (`state`, `uid`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- step: create-table pipelinerun_labels
CREATE TABLE IF NOT EXISTS `pipelinerun_labels` (
    `id` BIGINT NOT NULL AUTO_INCREMENT,
    `obj_uid` VARCHAR(64) NOT NULL,
    `key` VARCHAR(317) NOT NULL,
    `value` VARCHAR(63),
    PRIMARY KEY (`id`),
    KEY `pipelinerun_labels_uid` (`obj_uid`),
    KEY `pipelinerun_labels_key_value` (`key`, `value`, `obj_uid`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- step: create-table pipelinerun_annotations
CREATE TABLE IF NOT EXISTS `pipelinerun_annotations` (
    `id` BIGINT NOT NULL AUTO_INCREMENT,
    `obj_uid` VARCHAR(64) NOT NULL,
    `key` VARCHAR(317) NOT NULL,
    `value` MEDIUMTEXT,
    PRIMARY KEY (`id`),
    KEY `pipelinerun_annotations_uid` (`obj_uid`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- step: create-table inferenceserver
CREATE TABLE IF NOT EXISTS `inferenceserver` (
    `uid` VARCHAR(64) NOT NULL,
    `group_ver` VARCHAR(255) NOT NULL,
    `namespace` VARCHAR(255) NOT NULL,
    `name` VARCHAR(255) NOT NULL,
    `res_version` BIGINT UNSIGNED NOT NULL,
    `create_time` DATETIME(6) NOT NULL,
    `update_time` DATETIME(6),
    `delete_time` DATETIME(6),
    `proto` LONGBLOB,
    `json` LONGTEXT NOT NULL CHECK (`json` LIKE '{"%}' OR JSON_VALID(`json`)),
    `state` VARCHAR(255),
    `evicted_time` DATETIME(6),
    `content_hash` BINARY(32),
    `seq` BIGINT NOT NULL AUTO_INCREMENT,
    PRIMARY KEY (`seq`),
    UNIQUE KEY `inferenceserver_uid` (`uid`),
    KEY `inferenceserver_namespace_name` (`namespace`, `name`, `uid`),
    KEY `inferenceserver_create_time` (`create_time`, `uid`),
    KEY `inferenceserver_delete_time` (`delete_time`, `uid`),
    KEY `inferenceserver_state` (`state`, `uid`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- step: create-table inferenceserver_labels
CREATE TABLE IF NOT EXISTS `inferenceserver_labels` (
    `id` BIGINT NOT NULL AUTO_INCREMENT,
    `obj_uid` VARCHAR(64) NOT NULL,
    `key` VARCHAR(317) NOT NULL,
    `value` VARCHAR(63),
    PRIMARY KEY (`id`),
    KEY `inferenceserver_labels_uid` (`obj_uid`),
    KEY `inferenceserver_labels_key_value` (`key`, `value`, `obj_uid`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- step: create-table inferenceserver_annotations
CREATE TABLE IF NOT EXISTS `inferenceserver_annotations` (
    `id` BIGINT NOT NULL AUTO_INCREMENT,
    `obj_uid` VARCHAR(64) NOT NULL,
    `key` VARCHAR(317) NOT NULL,
    `value` MEDIUMTEXT,
    PRIMARY KEY (`id`),
    KEY `inferenceserver_annotations_uid` (`obj_uid`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- step: create-table revision
CREATE TABLE IF NOT EXISTS `revision` (
    `uid` VARCHAR(64) NOT NULL,
    `group_ver` VARCHAR(255) NOT NULL,
    `namespace` VARCHAR(255) NOT NULL,
    `name` VARCHAR(255) NOT NULL,
    `res_version` BIGINT UNSIGNED NOT NULL,
    `create_time` DATETIME(6) NOT NULL,
    `update_time` DATETIME(6),
    `delete_time` DATETIME(6),
    `proto` LONGBLOB,
    `json` LONGTEXT NOT NULL CHECK (`json` LIKE '{"%}' OR JSON_VALID(`json`)),
    `base_resource_namespace` VARCHAR(255),
    `base_resource_name` VARCHAR(255),
    `base_type` VARCHAR(255),
    `commit_branch` VARCHAR(255),
    `git_ref` VARCHAR(255),
    `owner` VARCHAR(255),
    `evicted_time` DATETIME(6),
    `content_hash` BINARY(32),
    `seq` BIGINT NOT NULL AUTO_INCREMENT,
    PRIMARY KEY (`seq`),
    UNIQUE KEY `revision_uid` (`uid`),
    KEY `revision_namespace_name` (`namespace`, `name`, `uid`),
    KEY `revision_create_time` (`create_time`, `uid`),
    KEY `revision_delete_time` (`delete_time`, `uid`),
    KEY `revision_base_resource` (`base_resource_namespace`, `base_resource_name`, `uid`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- step: create-table revision_labels
CREATE TABLE IF NOT EXISTS `revision_labels` (
    `id` BIGINT NOT NULL AUTO_INCREMENT,
    `obj_uid` VARCHAR(64) NOT NULL,
    `key` VARCHAR(317) NOT NULL,
    `value` VARCHAR(63),
    PRIMARY KEY (`id`),
    KEY `revision_labels_uid` (`obj_uid`),
    KEY `revision_labels_key_value` (`key`, `value`, `obj_uid`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- step: create-table revision_annotations
CREATE TABLE IF NOT EXISTS `revision_annotations` (
    `id` BIGINT NOT NULL AUTO_INCREMENT,
    `obj_uid` VARCHAR(64) NOT NULL,
    `key` VARCHAR(317) NOT NULL,
    `value` MEDIUMTEXT,
    PRIMARY KEY (`id`),
    KEY `revision_annotations_uid` (`obj_uid`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- step: create-table cluster
CREATE TABLE IF NOT EXISTS `cluster` (
    `uid` VARCHAR(64) NOT NULL,
    `group_ver` VARCHAR(255) NOT NULL,
    `namespace` VARCHAR(255) NOT NULL,
    `name` VARCHAR(255) NOT NULL,
    `res_version` BIGINT UNSIGNED NOT NULL,
    `create_time` DATETIME(6) NOT NULL,
    `update_time` DATETIME(6),
    `delete_time` DATETIME(6),
    `proto` LONGBLOB,
    `json` LONGTEXT NOT NULL CHECK (`json` LIKE '{"%}' OR JSON_VALID(`json`)),
    `evicted_time` DATETIME(6),
    `content_hash` BINARY(32),
    `seq` BIGINT NOT NULL AUTO_INCREMENT,
    PRIMARY KEY (`seq`),
    UNIQUE KEY `cluster_uid` (`uid`),
    KEY `cluster_namespace_name` (`namespace`, `name`, `uid`),
    KEY `cluster_create_time` (`create_time`, `uid`),
    KEY `cluster_delete_time` (`delete_time`, `uid`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- step: create-table cluster_labels
CREATE TABLE IF NOT EXISTS `cluster_labels` (
    `id` BIGINT NOT NULL AUTO_INCREMENT,
    `obj_uid` VARCHAR(64) NOT NULL,
    `key` VARCHAR(317) NOT NULL,
    `value` VARCHAR(63),
    PRIMARY KEY (`id`),
    KEY `cluster_labels_uid` (`obj_uid`),
    KEY `cluster_labels_key_value` (`key`, `value`, `obj_uid`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- step: create-table cluster_annotations
CREATE TABLE IF NOT EXISTS `cluster_annotations` (
    `id` BIGINT NOT NULL AUTO_INCREMENT,
    `obj_uid` VARCHAR(64) NOT NULL,
    `key` VARCHAR(317) NOT NULL,
    `value` MEDIUMTEXT,
    PRIMARY KEY (`id`),
    KEY `cluster_annotations_uid` (`obj_uid`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- step: create-table raycluster
CREATE TABLE IF NOT EXISTS `raycluster` (
    `uid` VARCHAR(64) NOT NULL,
    `group_ver` VARCHAR(255) NOT NULL,
    `namespace` VARCHAR(255) NOT NULL,
    `name` VARCHAR(255) NOT NULL,
    `res_version` BIGINT UNSIGNED NOT NULL,
    `create_time` DATETIME(6) NOT NULL,
    `update_time` DATETIME(6),
    `delete_time` DATETIME(6),
    `proto` LONGBLOB,
    `json` LONGTEXT NOT NULL CHECK (`json` LIKE '{"%}' OR JSON_VALID(`json`)),
    `evicted_time` DATETIME(6),
    `content_hash` BINARY(32),
    `seq` BIGINT NOT NULL AUTO_INCREMENT,
    PRIMARY KEY (`seq`),
    UNIQUE KEY `raycluster_uid` (`uid`),
    KEY `raycluster_namespace_name` (`namespace`, `name`, `uid`),
    KEY `raycluster_create_time` (`create_time`, `uid`),
    KEY `raycluster_delete_time` (`delete_time`, `uid`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- step: create-table raycluster_labels
CREATE TABLE IF NOT EXISTS `raycluster_labels` (
    `id` BIGINT NOT NULL AUTO_INCREMENT,
    `obj_uid` VARCHAR(64) NOT NULL,
    `key` VARCHAR(317) NOT NULL,
    `value` VARCHAR(63),
    PRIMARY KEY (`id`),
    KEY `raycluster_labels_uid` (`obj_uid`),
    KEY `raycluster_labels_key_value` (`key`, `value`, `obj_uid`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- step: create-table raycluster_annotations
CREATE TABLE IF NOT EXISTS `raycluster_annotations` (
    `id` BIGINT NOT NULL AUTO_INCREMENT,
    `obj_uid` VARCHAR(64) NOT NULL,
    `key` VARCHAR(317) NOT NULL,
    `value` MEDIUMTEXT,
    PRIMARY KEY (`id`),
    KEY `raycluster_annotations_uid` (`obj_uid`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- step: create-table rayjob
CREATE TABLE IF NOT EXISTS `rayjob` (
    `uid` VARCHAR(64) NOT NULL,
    `group_ver` VARCHAR(255) NOT NULL,
    `namespace` VARCHAR(255) NOT NULL,
    `name` VARCHAR(255) NOT NULL,
    `res_version` BIGINT UNSIGNED NOT NULL,
    `create_time` DATETIME(6) NOT NULL,
    `update_time` DATETIME(6),
    `delete_time` DATETIME(6),
    `proto` LONGBLOB,
    `json` LONGTEXT NOT NULL CHECK (`json` LIKE '{"%}' OR JSON_VALID(`json`)),
    `evicted_time` DATETIME(6),
    `content_hash` BINARY(32),
    `seq` BIGINT NOT NULL AUTO_INCREMENT,
    PRIMARY KEY (`seq`),
    UNIQUE KEY `rayjob_uid` (`uid`),
    KEY `rayjob_namespace_name` (`namespace`, `name`, `uid`),
    KEY `rayjob_create_time` (`create_time`, `uid`),
    KEY `rayjob_delete_time` (`delete_time`, `uid`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- step: create-table rayjob_labels
CREATE TABLE IF NOT EXISTS `rayjob_labels` (
    `id` BIGINT NOT NULL AUTO_INCREMENT,
    `obj_uid` VARCHAR(64) NOT NULL,
    `key` VARCHAR(317) NOT NULL,
    `value` VARCHAR(63),
    PRIMARY KEY (`id`),
    KEY `rayjob_labels_uid` (`obj_uid`),
    KEY `rayjob_labels_key_value` (`key`, `value`, `obj_uid`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- step: create-table rayjob_annotations
CREATE TABLE IF NOT EXISTS `rayjob_annotations` (
    `id` BIGINT NOT NULL AUTO_INCREMENT,
    `obj_uid` VARCHAR(64) NOT NULL,
    `key` VARCHAR(317) NOT NULL,
    `value` MEDIUMTEXT,
    PRIMARY KEY (`id`),
    KEY `rayjob_annotations_uid` (`obj_uid`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- step: create-table triggerrun
CREATE TABLE IF NOT EXISTS `triggerrun` (
    `uid` VARCHAR(64) NOT NULL,
    `group_ver` VARCHAR(255) NOT NULL,
    `namespace` VARCHAR(255) NOT NULL,
    `name` VARCHAR(255) NOT NULL,
    `res_version` BIGINT UNSIGNED NOT NULL,
    `create_time` DATETIME(6) NOT NULL,
    `update_time` DATETIME(6),
    `delete_time` DATETIME(6),
    `proto` LONGBLOB,
    `json` LONGTEXT NOT NULL CHECK (`json` LIKE '{"%}' OR JSON_VALID(`json`)),
    `pipeline_namespace` VARCHAR(255),
    `pipeline_name` VARCHAR(255),
    `revision_namespace` VARCHAR(255),
    `revision_name` VARCHAR(255),
    `state` VARCHAR(255),
    `auto_flip` BOOLEAN,
    `evicted_time` DATETIME(6),
    `content_hash` BINARY(32),
    `seq` BIGINT NOT NULL AUTO_INCREMENT,
    PRIMARY KEY (`seq`),
    UNIQUE KEY `triggerrun_uid` (`uid`),
    KEY `triggerrun_namespace_name` (`namespace`, `name`, `uid`),
    KEY `triggerrun_create_time` (`create_time`, `uid`),
    KEY `triggerrun_delete_time` (`delete_time`, `uid`),
    KEY `triggerrun_pipeline` (`pipeline_namespace`, `pipeline_name`, `uid`),
    KEY `triggerrun_state` (`state`, `uid`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- step: create-table triggerrun_labels
CREATE TABLE IF NOT EXISTS `triggerrun_labels` (
    `id` BIGINT NOT NULL AUTO_INCREMENT,
    `obj_uid` VARCHAR(64) NOT NULL,
    `key` VARCHAR(317) NOT NULL,
    `value` VARCHAR(63),
    PRIMARY KEY (`id`),
    KEY `triggerrun_labels_uid` (`obj_uid`),
    KEY `triggerrun_labels_key_value` (`key`, `value`, `obj_uid`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- step: create-table triggerrun_annotations
CREATE TABLE IF NOT EXISTS `triggerrun_annotations` (
    `id` BIGINT NOT NULL AUTO_INCREMENT,
    `obj_uid` VARCHAR(64) NOT NULL,
    `key` VARCHAR(317) NOT NULL,
    `value` MEDIUMTEXT,
    PRIMARY KEY (`id`),
    KEY `triggerrun_annotations_uid` (`obj_uid`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- step: create-table deployment
CREATE TABLE IF NOT EXISTS `deployment` (
    `uid` VARCHAR(64) NOT NULL,
    `group_ver` VARCHAR(255) NOT NULL,
    `namespace` VARCHAR(255) NOT NULL,
    `name` VARCHAR(255) NOT NULL,
    `res_version` BIGINT UNSIGNED NOT NULL,
    `create_time` DATETIME(6) NOT NULL,
    `update_time` DATETIME(6),
    `delete_time` DATETIME(6),
    `proto` LONGBLOB,
    `json` LONGTEXT NOT NULL CHECK (`json` LIKE '{"%}' OR JSON_VALID(`json`)),
    `state` VARCHAR(255),
    `target_definition_type` VARCHAR(255),
    `current_revision_namespace` VARCHAR(255),
    `current_revision_name` VARCHAR(255),
    `deletion_requested_timestamp` DATETIME(6),
    `evicted_time` DATETIME(6),
    `content_hash` BINARY(32),
    `seq` BIGINT NOT NULL AUTO_INCREMENT,
    PRIMARY KEY (`seq`),
    UNIQUE KEY `deployment_uid` (`uid`),
    KEY `deployment_namespace_name` (`namespace`, `name`, `uid`),
    KEY `deployment_create_time` (`create_time`, `uid`),
    KEY `deployment_delete_time` (`delete_time`, `uid`),
    KEY `deployment_state` (`state`, `uid`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- step: create-table deployment_labels
CREATE TABLE IF NOT EXISTS `deployment_labels` (
    `id` BIGINT NOT NULL AUTO_INCREMENT,
    `obj_uid` VARCHAR(64) NOT NULL,
    `key` VARCHAR(317) NOT NULL,
    `value` VARCHAR(63),
    PRIMARY KEY (`id`),
    KEY `deployment_labels_uid` (`obj_uid`),
    KEY `deployment_labels_key_value` (`key`, `value`, `obj_uid`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- step: create-table deployment_annotations
CREATE TABLE IF NOT EXISTS `deployment_annotations` (
    `id` BIGINT NOT NULL AUTO_INCREMENT,
    `obj_uid` VARCHAR(64) NOT NULL,
    `key` VARCHAR(317) NOT NULL,
    `value` MEDIUMTEXT,
    PRIMARY KEY (`id`),
    KEY `deployment_annotations_uid` (`obj_uid`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- step: create-table deployment_history
CREATE TABLE IF NOT EXISTS `deployment_history` (
    `obj_uid` VARCHAR(64) NOT NULL,
    `branch` BIGINT NOT NULL,
    `res_version` BIGINT UNSIGNED NOT NULL,
    `seen_time` DATETIME(6) NOT NULL,
    `encoding` TINYINT NOT NULL,
    `payload` LONGBLOB NOT NULL,
    PRIMARY KEY (`obj_uid`, `branch`, `res_version`),
    KEY `deployment_history_seen_time` (`seen_time`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- step: create-table sparkjob
CREATE TABLE IF NOT EXISTS `sparkjob` (
    `uid` VARCHAR(64) NOT NULL,
    `group_ver` VARCHAR(255) NOT NULL,
    `namespace` VARCHAR(255) NOT NULL,
    `name` VARCHAR(255) NOT NULL,
    `res_version` BIGINT UNSIGNED NOT NULL,
    `create_time` DATETIME(6) NOT NULL,
    `update_time` DATETIME(6),
    `delete_time` DATETIME(6),
    `proto` LONGBLOB,
    `json` LONGTEXT NOT NULL CHECK (`json` LIKE '{"%}' OR JSON_VALID(`json`)),
    `evicted_time` DATETIME(6),
    `content_hash` BINARY(32),
    `seq` BIGINT NOT NULL AUTO_INCREMENT,
    PRIMARY KEY (`seq`),
    UNIQUE KEY `sparkjob_uid` (`uid`),
    KEY `sparkjob_namespace_name` (`namespace`, `name`, `uid`),
    KEY `sparkjob_create_time` (`create_time`, `uid`),
    KEY `sparkjob_delete_time` (`delete_time`, `uid`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- step: create-table sparkjob_labels
CREATE TABLE IF NOT EXISTS `sparkjob_labels` (
    `id` BIGINT NOT NULL AUTO_INCREMENT,
    `obj_uid` VARCHAR(64) NOT NULL,
    `key` VARCHAR(317) NOT NULL,
    `value` VARCHAR(63),
    PRIMARY KEY (`id`),
    KEY `sparkjob_labels_uid` (`obj_uid`),
    KEY `sparkjob_labels_key_value` (`key`, `value`, `obj_uid`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- step: create-table sparkjob_annotations
CREATE TABLE IF NOT EXISTS `sparkjob_annotations` (
    `id` BIGINT NOT NULL AUTO_INCREMENT,
    `obj_uid` VARCHAR(64) NOT NULL,
    `key` VARCHAR(317) NOT NULL,
    `value` MEDIUMTEXT,
    PRIMARY KEY (`id`),
    KEY `sparkjob_annotations_uid` (`obj_uid`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
