-- 0001_initial
-- compatible: 1
--
-- Planned by `kindex plan`; `kindex migrate` takes the steps in order and can go on after any of them.

-- step: create-table project
CREATE TABLE IF NOT EXISTS `project` (
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
    `tier` INTEGER,
    `evicted_time` TEXT,
    `content_hash` BLOB,
    `seq` INTEGER NOT NULL PRIMARY KEY
) STRICT;

-- step: add-key project project_uid
CREATE UNIQUE INDEX IF NOT EXISTS `project_uid` ON `project` (`uid`);

-- step: add-key project project_namespace_name
CREATE INDEX IF NOT EXISTS `project_namespace_name` ON `project` (`namespace`, `name`, `uid`);

-- step: add-key project project_create_time
CREATE INDEX IF NOT EXISTS `project_create_time` ON `project` (`create_time`, `uid`);

-- step: add-key project project_delete_time
CREATE INDEX IF NOT EXISTS `project_delete_time` ON `project` (`delete_time`, `uid`);

-- step: create-table project_labels
CREATE TABLE IF NOT EXISTS `project_labels` (
    `id` INTEGER NOT NULL PRIMARY KEY,
    `obj_uid` TEXT NOT NULL,
    `key` TEXT NOT NULL,
    `value` TEXT
) STRICT;

-- step: add-key project_labels project_labels_uid
CREATE INDEX IF NOT EXISTS `project_labels_uid` ON `project_labels` (`obj_uid`);

-- step: add-key project_labels project_labels_key_value
CREATE INDEX IF NOT EXISTS `project_labels_key_value` ON `project_labels` (`key`, `value`, `obj_uid`);

-- step: create-table project_annotations
CREATE TABLE IF NOT EXISTS `project_annotations` (
    `id` INTEGER NOT NULL PRIMARY KEY,
    `obj_uid` TEXT NOT NULL,
    `key` TEXT NOT NULL,
    `value` TEXT
) STRICT;

-- step: add-key project_annotations project_annotations_uid
CREATE INDEX IF NOT EXISTS `project_annotations_uid` ON `project_annotations` (`obj_uid`);

-- step: create-table modelfamily
CREATE TABLE IF NOT EXISTS `modelfamily` (
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
    `model_family_name` TEXT,
    `evicted_time` TEXT,
    `content_hash` BLOB,
    `seq` INTEGER NOT NULL PRIMARY KEY
) STRICT;

-- step: add-key modelfamily modelfamily_uid
CREATE UNIQUE INDEX IF NOT EXISTS `modelfamily_uid` ON `modelfamily` (`uid`);

-- step: add-key modelfamily modelfamily_namespace_name
CREATE INDEX IF NOT EXISTS `modelfamily_namespace_name` ON `modelfamily` (`namespace`, `name`, `uid`);

-- step: add-key modelfamily modelfamily_create_time
CREATE INDEX IF NOT EXISTS `modelfamily_create_time` ON `modelfamily` (`create_time`, `uid`);

-- step: add-key modelfamily modelfamily_delete_time
CREATE INDEX IF NOT EXISTS `modelfamily_delete_time` ON `modelfamily` (`delete_time`, `uid`);

-- step: create-table modelfamily_labels
CREATE TABLE IF NOT EXISTS `modelfamily_labels` (
    `id` INTEGER NOT NULL PRIMARY KEY,
    `obj_uid` TEXT NOT NULL,
    `key` TEXT NOT NULL,
    `value` TEXT
) STRICT;

-- step: add-key modelfamily_labels modelfamily_labels_uid
CREATE INDEX IF NOT EXISTS `modelfamily_labels_uid` ON `modelfamily_labels` (`obj_uid`);

-- step: add-key modelfamily_labels modelfamily_labels_key_value
CREATE INDEX IF NOT EXISTS `modelfamily_labels_key_value` ON `modelfamily_labels` (`key`, `value`, `obj_uid`);

-- step: create-table modelfamily_annotations
CREATE TABLE IF NOT EXISTS `modelfamily_annotations` (
    `id` INTEGER NOT NULL PRIMARY KEY,
    `obj_uid` TEXT NOT NULL,
    `key` TEXT NOT NULL,
    `value` TEXT
) STRICT;

-- step: add-key modelfamily_annotations modelfamily_annotations_uid
CREATE INDEX IF NOT EXISTS `modelfamily_annotations_uid` ON `modelfamily_annotations` (`obj_uid`);

-- step: create-table model
CREATE TABLE IF NOT EXISTS `model` (
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
    `algorithm` TEXT,
    `training_framework` TEXT,
    `owner` TEXT,
    `source` TEXT,
    `description` TEXT,
    `model_kind` TEXT,
    `package_type` TEXT,
    `revision_id` INTEGER,
    `src_pipeline_run_namespace` TEXT,
    `src_pipeline_run_name` TEXT,
    `model_family_namespace` TEXT,
    `model_family_name` TEXT,
    `feature_eval_report_namespace` TEXT,
    `feature_eval_report_name` TEXT,
    `performance_eval_report_namespace` TEXT,
    `performance_eval_report_name` TEXT,
    `feature_quality_report_namespace` TEXT,
    `feature_quality_report_name` TEXT,
    `explainability_report_namespace` TEXT,
    `explainability_report_name` TEXT,
    `evicted_time` TEXT,
    `content_hash` BLOB,
    `seq` INTEGER NOT NULL PRIMARY KEY
) STRICT;

-- step: add-key model model_uid
CREATE UNIQUE INDEX IF NOT EXISTS `model_uid` ON `model` (`uid`);

-- step: add-key model model_namespace_name
CREATE INDEX IF NOT EXISTS `model_namespace_name` ON `model` (`namespace`, `name`, `uid`);

-- step: add-key model model_create_time
CREATE INDEX IF NOT EXISTS `model_create_time` ON `model` (`create_time`, `uid`);

-- step: add-key model model_delete_time
CREATE INDEX IF NOT EXISTS `model_delete_time` ON `model` (`delete_time`, `uid`);

-- step: add-key model model_algorithm
CREATE INDEX IF NOT EXISTS `model_algorithm` ON `model` (`algorithm`, `uid`);

-- step: add-key model model_owner
CREATE INDEX IF NOT EXISTS `model_owner` ON `model` (`owner`, `uid`);

-- step: create-table model_labels
CREATE TABLE IF NOT EXISTS `model_labels` (
    `id` INTEGER NOT NULL PRIMARY KEY,
    `obj_uid` TEXT NOT NULL,
    `key` TEXT NOT NULL,
    `value` TEXT
) STRICT;

-- step: add-key model_labels model_labels_uid
CREATE INDEX IF NOT EXISTS `model_labels_uid` ON `model_labels` (`obj_uid`);

-- step: add-key model_labels model_labels_key_value
CREATE INDEX IF NOT EXISTS `model_labels_key_value` ON `model_labels` (`key`, `value`, `obj_uid`);

-- step: create-table model_annotations
CREATE TABLE IF NOT EXISTS `model_annotations` (
    `id` INTEGER NOT NULL PRIMARY KEY,
    `obj_uid` TEXT NOT NULL,
    `key` TEXT NOT NULL,
    `value` TEXT
) STRICT;

-- step: add-key model_annotations model_annotations_uid
CREATE INDEX IF NOT EXISTS `model_annotations_uid` ON `model_annotations` (`obj_uid`);

-- step: create-table model_history
CREATE TABLE IF NOT EXISTS `model_history` (
    `obj_uid` TEXT NOT NULL,
    `branch` INTEGER NOT NULL,
    `res_version` INTEGER NOT NULL,
    `seen_time` TEXT NOT NULL,
    `encoding` INTEGER NOT NULL,
    `payload` BLOB NOT NULL,
    PRIMARY KEY (`obj_uid`, `branch`, `res_version`)
) STRICT;

-- step: add-key model_history model_history_seen_time
CREATE INDEX IF NOT EXISTS `model_history_seen_time` ON `model_history` (`seen_time`);

-- step: create-table pipeline
CREATE TABLE IF NOT EXISTS `pipeline` (
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
    `owner` TEXT,
    `pipeline_type` TEXT,
    `evicted_time` TEXT,
    `content_hash` BLOB,
    `seq` INTEGER NOT NULL PRIMARY KEY
) STRICT;

-- step: add-key pipeline pipeline_uid
CREATE UNIQUE INDEX IF NOT EXISTS `pipeline_uid` ON `pipeline` (`uid`);

-- step: add-key pipeline pipeline_namespace_name
CREATE INDEX IF NOT EXISTS `pipeline_namespace_name` ON `pipeline` (`namespace`, `name`, `uid`);

-- step: add-key pipeline pipeline_create_time
CREATE INDEX IF NOT EXISTS `pipeline_create_time` ON `pipeline` (`create_time`, `uid`);

-- step: add-key pipeline pipeline_delete_time
CREATE INDEX IF NOT EXISTS `pipeline_delete_time` ON `pipeline` (`delete_time`, `uid`);

-- step: add-key pipeline pipeline_owner
CREATE INDEX IF NOT EXISTS `pipeline_owner` ON `pipeline` (`owner`, `uid`);

-- step: create-table pipeline_labels
CREATE TABLE IF NOT EXISTS `pipeline_labels` (
    `id` INTEGER NOT NULL PRIMARY KEY,
    `obj_uid` TEXT NOT NULL,
    `key` TEXT NOT NULL,
    `value` TEXT
) STRICT;

-- step: add-key pipeline_labels pipeline_labels_uid
CREATE INDEX IF NOT EXISTS `pipeline_labels_uid` ON `pipeline_labels` (`obj_uid`);

-- step: add-key pipeline_labels pipeline_labels_key_value
CREATE INDEX IF NOT EXISTS `pipeline_labels_key_value` ON `pipeline_labels` (`key`, `value`, `obj_uid`);

-- step: create-table pipeline_annotations
CREATE TABLE IF NOT EXISTS `pipeline_annotations` (
    `id` INTEGER NOT NULL PRIMARY KEY,
    `obj_uid` TEXT NOT NULL,
    `key` TEXT NOT NULL,
    `value` TEXT
) STRICT;

-- step: add-key pipeline_annotations pipeline_annotations_uid
CREATE INDEX IF NOT EXISTS `pipeline_annotations_uid` ON `pipeline_annotations` (`obj_uid`);

-- step: create-table pipelinerun
CREATE TABLE IF NOT EXISTS `pipelinerun` (
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
    `pipeline_namespace` TEXT,
    `pipeline_name` TEXT,
    `revision_namespace` TEXT,
    `revision_name` TEXT,
    `resume_pipeline_run_namespace` TEXT,
    `resume_pipeline_run_name` TEXT,
    `state` TEXT,
    `actor` TEXT,
    `end_time` TEXT,
    `exception_type` TEXT,
    `evicted_time` TEXT,
    `content_hash` BLOB,
    `seq` INTEGER NOT NULL PRIMARY KEY
) STRICT;

-- step: add-key pipelinerun pipelinerun_uid
CREATE UNIQUE INDEX IF NOT EXISTS `pipelinerun_uid` ON `pipelinerun` (`uid`);

-- step: add-key pipelinerun pipelinerun_namespace_name
CREATE INDEX IF NOT EXISTS `pipelinerun_namespace_name` ON `pipelinerun` (`namespace`, `name`, `uid`);

-- step: add-key pipelinerun pipelinerun_create_time
CREATE INDEX IF NOT EXISTS `pipelinerun_create_time` ON `pipelinerun` (`create_time`, `uid`);

-- step: add-key pipelinerun pipelinerun_delete_time
CREATE INDEX IF NOT EXISTS `pipelinerun_delete_time` ON `pipelinerun` (`delete_time`, `uid`);

-- step: add-key pipelinerun pipelinerun_pipeline
CREATE INDEX IF NOT EXISTS `pipelinerun_pipeline` ON `pipelinerun` (`pipeline_namespace`, `pipeline_name`, `uid`);

-- step: add-key pipelinerun pipelinerun_state
CREATE INDEX IF NOT EXISTS `pipelinerun_state` ON `pipelinerun` (`state`, `uid`);

-- step: create-table pipelinerun_labels
CREATE TABLE IF NOT EXISTS `pipelinerun_labels` (
    `id` INTEGER NOT NULL PRIMARY KEY,
    `obj_uid` TEXT NOT NULL,
    `key` TEXT NOT NULL,
    `value` TEXT
) STRICT;

-- step: add-key pipelinerun_labels pipelinerun_labels_uid
CREATE INDEX IF NOT EXISTS `pipelinerun_labels_uid` ON `pipelinerun_labels` (`obj_uid`);

-- step: add-key pipelinerun_labels pipelinerun_labels_key_value
CREATE INDEX IF NOT EXISTS `pipelinerun_labels_key_value` ON `pipelinerun_labels` (`key`, `value`, `obj_uid`);

-- step: create-table pipelinerun_annotations
CREATE TABLE IF NOT EXISTS `pipelinerun_annotations` (
    `id` INTEGER NOT NULL PRIMARY KEY,
    `obj_uid` TEXT NOT NULL,
    `key` TEXT NOT NULL,
    `value` TEXT
) STRICT;

-- step: add-key pipelinerun_annotations pipelinerun_annotations_uid
CREATE INDEX IF NOT EXISTS `pipelinerun_annotations_uid` ON `pipelinerun_annotations` (`obj_uid`);

-- step: create-table inferenceserver
CREATE TABLE IF NOT EXISTS `inferenceserver` (
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
    `state` TEXT,
    `evicted_time` TEXT,
    `content_hash` BLOB,
    `seq` INTEGER NOT NULL PRIMARY KEY
) STRICT;

-- step: add-key inferenceserver inferenceserver_uid
CREATE UNIQUE INDEX IF NOT EXISTS `inferenceserver_uid` ON `inferenceserver` (`uid`);

-- step: add-key inferenceserver inferenceserver_namespace_name
CREATE INDEX IF NOT EXISTS `inferenceserver_namespace_name` ON `inferenceserver` (`namespace`, `name`, `uid`);

-- step: add-key inferenceserver inferenceserver_create_time
CREATE INDEX IF NOT EXISTS `inferenceserver_create_time` ON `inferenceserver` (`create_time`, `uid`);

-- step: add-key inferenceserver inferenceserver_delete_time
CREATE INDEX IF NOT EXISTS `inferenceserver_delete_time` ON `inferenceserver` (`delete_time`, `uid`);

-- step: add-key inferenceserver inferenceserver_state
CREATE INDEX IF NOT EXISTS `inferenceserver_state` ON `inferenceserver` (`state`, `uid`);

-- step: create-table inferenceserver_labels
CREATE TABLE IF NOT EXISTS `inferenceserver_labels` (
    `id` INTEGER NOT NULL PRIMARY KEY,
    `obj_uid` TEXT NOT NULL,
    `key` TEXT NOT NULL,
    `value` TEXT
) STRICT;

-- step: add-key inferenceserver_labels inferenceserver_labels_uid
CREATE INDEX IF NOT EXISTS `inferenceserver_labels_uid` ON `inferenceserver_labels` (`obj_uid`);

-- step: add-key inferenceserver_labels inferenceserver_labels_key_value
CREATE INDEX IF NOT EXISTS `inferenceserver_labels_key_value` ON `inferenceserver_labels` (`key`, `value`, `obj_uid`);

-- step: create-table inferenceserver_annotations
CREATE TABLE IF NOT EXISTS `inferenceserver_annotations` (
    `id` INTEGER NOT NULL PRIMARY KEY,
    `obj_uid` TEXT NOT NULL,
    `key` TEXT NOT NULL,
    `value` TEXT
) STRICT;

-- step: add-key inferenceserver_annotations inferenceserver_annotations_uid
CREATE INDEX IF NOT EXISTS `inferenceserver_annotations_uid` ON `inferenceserver_annotations` (`obj_uid`);

-- step: create-table revision
CREATE TABLE IF NOT EXISTS `revision` (
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
    `base_resource_namespace` TEXT,
    `base_resource_name` TEXT,
    `base_type` TEXT,
    `commit_branch` TEXT,
    `git_ref` TEXT,
    `owner` TEXT,
    `evicted_time` TEXT,
    `content_hash` BLOB,
    `seq` INTEGER NOT NULL PRIMARY KEY
) STRICT;

-- step: add-key revision revision_uid
CREATE UNIQUE INDEX IF NOT EXISTS `revision_uid` ON `revision` (`uid`);

-- step: add-key revision revision_namespace_name
CREATE INDEX IF NOT EXISTS `revision_namespace_name` ON `revision` (`namespace`, `name`, `uid`);

-- step: add-key revision revision_create_time
CREATE INDEX IF NOT EXISTS `revision_create_time` ON `revision` (`create_time`, `uid`);

-- step: add-key revision revision_delete_time
CREATE INDEX IF NOT EXISTS `revision_delete_time` ON `revision` (`delete_time`, `uid`);

-- step: add-key revision revision_base_resource
CREATE INDEX IF NOT EXISTS `revision_base_resource` ON `revision` (`base_resource_namespace`, `base_resource_name`, `uid`);

-- step: create-table revision_labels
CREATE TABLE IF NOT EXISTS `revision_labels` (
    `id` INTEGER NOT NULL PRIMARY KEY,
    `obj_uid` TEXT NOT NULL,
    `key` TEXT NOT NULL,
    `value` TEXT
) STRICT;

-- step: add-key revision_labels revision_labels_uid
CREATE INDEX IF NOT EXISTS `revision_labels_uid` ON `revision_labels` (`obj_uid`);

-- step: add-key revision_labels revision_labels_key_value
CREATE INDEX IF NOT EXISTS `revision_labels_key_value` ON `revision_labels` (`key`, `value`, `obj_uid`);

-- step: create-table revision_annotations
CREATE TABLE IF NOT EXISTS `revision_annotations` (
    `id` INTEGER NOT NULL PRIMARY KEY,
    `obj_uid` TEXT NOT NULL,
    `key` TEXT NOT NULL,
    `value` TEXT
) STRICT;

-- step: add-key revision_annotations revision_annotations_uid
CREATE INDEX IF NOT EXISTS `revision_annotations_uid` ON `revision_annotations` (`obj_uid`);

-- step: create-table cluster
CREATE TABLE IF NOT EXISTS `cluster` (
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
    `evicted_time` TEXT,
    `content_hash` BLOB,
    `seq` INTEGER NOT NULL PRIMARY KEY
) STRICT;

-- step: add-key cluster cluster_uid
CREATE UNIQUE INDEX IF NOT EXISTS `cluster_uid` ON `cluster` (`uid`);

-- step: add-key cluster cluster_namespace_name
CREATE INDEX IF NOT EXISTS `cluster_namespace_name` ON `cluster` (`namespace`, `name`, `uid`);

-- step: add-key cluster cluster_create_time
CREATE INDEX IF NOT EXISTS `cluster_create_time` ON `cluster` (`create_time`, `uid`);

-- step: add-key cluster cluster_delete_time
CREATE INDEX IF NOT EXISTS `cluster_delete_time` ON `cluster` (`delete_time`, `uid`);

-- step: create-table cluster_labels
CREATE TABLE IF NOT EXISTS `cluster_labels` (
    `id` INTEGER NOT NULL PRIMARY KEY,
    `obj_uid` TEXT NOT NULL,
    `key` TEXT NOT NULL,
    `value` TEXT
) STRICT;

-- step: add-key cluster_labels cluster_labels_uid
CREATE INDEX IF NOT EXISTS `cluster_labels_uid` ON `cluster_labels` (`obj_uid`);

-- step: add-key cluster_labels cluster_labels_key_value
CREATE INDEX IF NOT EXISTS `cluster_labels_key_value` ON `cluster_labels` (`key`, `value`, `obj_uid`);

-- step: create-table cluster_annotations
CREATE TABLE IF NOT EXISTS `cluster_annotations` (
    `id` INTEGER NOT NULL PRIMARY KEY,
    `obj_uid` TEXT NOT NULL,
    `key` TEXT NOT NULL,
    `value` TEXT
) STRICT;

-- step: add-key cluster_annotations cluster_annotations_uid
CREATE INDEX IF NOT EXISTS `cluster_annotations_uid` ON `cluster_annotations` (`obj_uid`);

-- step: create-table raycluster
CREATE TABLE IF NOT EXISTS `raycluster` (
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
    `evicted_time` TEXT,
    `content_hash` BLOB,
    `seq` INTEGER NOT NULL PRIMARY KEY
) STRICT;

-- step: add-key raycluster raycluster_uid
CREATE UNIQUE INDEX IF NOT EXISTS `raycluster_uid` ON `raycluster` (`uid`);

-- step: add-key raycluster raycluster_namespace_name
CREATE INDEX IF NOT EXISTS `raycluster_namespace_name` ON `raycluster` (`namespace`, `name`, `uid`);

-- step: add-key raycluster raycluster_create_time
CREATE INDEX IF NOT EXISTS `raycluster_create_time` ON `raycluster` (`create_time`, `uid`);

-- step: add-key raycluster raycluster_delete_time
CREATE INDEX IF NOT EXISTS `raycluster_delete_time` ON `raycluster` (`delete_time`, `uid`);

-- step: create-table raycluster_labels
CREATE TABLE IF NOT EXISTS `raycluster_labels` (
    `id` INTEGER NOT NULL PRIMARY KEY,
    `obj_uid` TEXT NOT NULL,
    `key` TEXT NOT NULL,
    `value` TEXT
) STRICT;

-- step: add-key raycluster_labels raycluster_labels_uid
CREATE INDEX IF NOT EXISTS `raycluster_labels_uid` ON `raycluster_labels` (`obj_uid`);

-- step: add-key raycluster_labels raycluster_labels_key_value
CREATE INDEX IF NOT EXISTS `raycluster_labels_key_value` ON `raycluster_labels` (`key`, `value`, `obj_uid`);

-- step: create-table raycluster_annotations
CREATE TABLE IF NOT EXISTS `raycluster_annotations` (
    `id` INTEGER NOT NULL PRIMARY KEY,
    `obj_uid` TEXT NOT NULL,
    `key` TEXT NOT NULL,
    `value` TEXT
) STRICT;

-- step: add-key raycluster_annotations raycluster_annotations_uid
CREATE INDEX IF NOT EXISTS `raycluster_annotations_uid` ON `raycluster_annotations` (`obj_uid`);

-- step: create-table rayjob
CREATE TABLE IF NOT EXISTS `rayjob` (
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
    `evicted_time` TEXT,
    `content_hash` BLOB,
    `seq` INTEGER NOT NULL PRIMARY KEY
) STRICT;

-- step: add-key rayjob rayjob_uid
CREATE UNIQUE INDEX IF NOT EXISTS `rayjob_uid` ON `rayjob` (`uid`);

-- step: add-key rayjob rayjob_namespace_name
CREATE INDEX IF NOT EXISTS `rayjob_namespace_name` ON `rayjob` (`namespace`, `name`, `uid`);

-- step: add-key rayjob rayjob_create_time
CREATE INDEX IF NOT EXISTS `rayjob_create_time` ON `rayjob` (`create_time`, `uid`);

-- step: add-key rayjob rayjob_delete_time
CREATE INDEX IF NOT EXISTS `rayjob_delete_time` ON `rayjob` (`delete_time`, `uid`);

-- step: create-table rayjob_labels
CREATE TABLE IF NOT EXISTS `rayjob_labels` (
    `id` INTEGER NOT NULL PRIMARY KEY,
    `obj_uid` TEXT NOT NULL,
    `key` TEXT NOT NULL,
    `value` TEXT
) STRICT;

-- step: add-key rayjob_labels rayjob_labels_uid
CREATE INDEX IF NOT EXISTS `rayjob_labels_uid` ON `rayjob_labels` (`obj_uid`);

-- step: add-key rayjob_labels rayjob_labels_key_value
CREATE INDEX IF NOT EXISTS `rayjob_labels_key_value` ON `rayjob_labels` (`key`, `value`, `obj_uid`);

-- step: create-table rayjob_annotations
CREATE TABLE IF NOT EXISTS `rayjob_annotations` (
    `id` INTEGER NOT NULL PRIMARY KEY,
    `obj_uid` TEXT NOT NULL,
    `key` TEXT NOT NULL,
    `value` TEXT
) STRICT;

-- step: add-key rayjob_annotations rayjob_annotations_uid
CREATE INDEX IF NOT EXISTS `rayjob_annotations_uid` ON `rayjob_annotations` (`obj_uid`);

-- step: create-table triggerrun
CREATE TABLE IF NOT EXISTS `triggerrun` (
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
    `pipeline_namespace` TEXT,
    `pipeline_name` TEXT,
    `revision_namespace` TEXT,
    `revision_name` TEXT,
    `state` TEXT,
    `auto_flip` INTEGER,
    `evicted_time` TEXT,
    `content_hash` BLOB,
    `seq` INTEGER NOT NULL PRIMARY KEY
) STRICT;

-- step: add-key triggerrun triggerrun_uid
CREATE UNIQUE INDEX IF NOT EXISTS `triggerrun_uid` ON `triggerrun` (`uid`);

-- step: add-key triggerrun triggerrun_namespace_name
CREATE INDEX IF NOT EXISTS `triggerrun_namespace_name` ON `triggerrun` (`namespace`, `name`, `uid`);

-- step: add-key triggerrun triggerrun_create_time
CREATE INDEX IF NOT EXISTS `triggerrun_create_time` ON `triggerrun` (`create_time`, `uid`);

-- step: add-key triggerrun triggerrun_delete_time
CREATE INDEX IF NOT EXISTS `triggerrun_delete_time` ON `triggerrun` (`delete_time`, `uid`);

-- step: add-key triggerrun triggerrun_pipeline
CREATE INDEX IF NOT EXISTS `triggerrun_pipeline` ON `triggerrun` (`pipeline_namespace`, `pipeline_name`, `uid`);

-- step: add-key triggerrun triggerrun_state
CREATE INDEX IF NOT EXISTS `triggerrun_state` ON `triggerrun` (`state`, `uid`);

-- step: create-table triggerrun_labels
CREATE TABLE IF NOT EXISTS `triggerrun_labels` (
    `id` INTEGER NOT NULL PRIMARY KEY,
    `obj_uid` TEXT NOT NULL,
    `key` TEXT NOT NULL,
    `value` TEXT
) STRICT;

-- step: add-key triggerrun_labels triggerrun_labels_uid
CREATE INDEX IF NOT EXISTS `triggerrun_labels_uid` ON `triggerrun_labels` (`obj_uid`);

-- step: add-key triggerrun_labels triggerrun_labels_key_value
CREATE INDEX IF NOT EXISTS `triggerrun_labels_key_value` ON `triggerrun_labels` (`key`, `value`, `obj_uid`);

-- step: create-table triggerrun_annotations
CREATE TABLE IF NOT EXISTS `triggerrun_annotations` (
    `id` INTEGER NOT NULL PRIMARY KEY,
    `obj_uid` TEXT NOT NULL,
    `key` TEXT NOT NULL,
    `value` TEXT
) STRICT;

-- step: add-key triggerrun_annotations triggerrun_annotations_uid
CREATE INDEX IF NOT EXISTS `triggerrun_annotations_uid` ON `triggerrun_annotations` (`obj_uid`);

-- step: create-table deployment
CREATE TABLE IF NOT EXISTS `deployment` (
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
    `state` TEXT,
    `target_definition_type` TEXT,
    `current_revision_namespace` TEXT,
    `current_revision_name` TEXT,
    `deletion_requested_timestamp` TEXT,
    `evicted_time` TEXT,
    `content_hash` BLOB,
    `seq` INTEGER NOT NULL PRIMARY KEY
) STRICT;

-- step: add-key deployment deployment_uid
CREATE UNIQUE INDEX IF NOT EXISTS `deployment_uid` ON `deployment` (`uid`);

-- step: add-key deployment deployment_namespace_name
CREATE INDEX IF NOT EXISTS `deployment_namespace_name` ON `deployment` (`namespace`, `name`, `uid`);

-- step: add-key deployment deployment_create_time
CREATE INDEX IF NOT EXISTS `deployment_create_time` ON `deployment` (`create_time`, `uid`);

-- step: add-key deployment deployment_delete_time
CREATE INDEX IF NOT EXISTS `deployment_delete_time` ON `deployment` (`delete_time`, `uid`);

-- step: add-key deployment deployment_state
CREATE INDEX IF NOT EXISTS `deployment_state` ON `deployment` (`state`, `uid`);

-- step: create-table deployment_labels
CREATE TABLE IF NOT EXISTS `deployment_labels` (
    `id` INTEGER NOT NULL PRIMARY KEY,
    `obj_uid` TEXT NOT NULL,
    `key` TEXT NOT NULL,
    `value` TEXT
) STRICT;

-- step: add-key deployment_labels deployment_labels_uid
CREATE INDEX IF NOT EXISTS `deployment_labels_uid` ON `deployment_labels` (`obj_uid`);

-- step: add-key deployment_labels deployment_labels_key_value
CREATE INDEX IF NOT EXISTS `deployment_labels_key_value` ON `deployment_labels` (`key`, `value`, `obj_uid`);

-- step: create-table deployment_annotations
CREATE TABLE IF NOT EXISTS `deployment_annotations` (
    `id` INTEGER NOT NULL PRIMARY KEY,
    `obj_uid` TEXT NOT NULL,
    `key` TEXT NOT NULL,
    `value` TEXT
) STRICT;

-- step: add-key deployment_annotations deployment_annotations_uid
CREATE INDEX IF NOT EXISTS `deployment_annotations_uid` ON `deployment_annotations` (`obj_uid`);

-- step: create-table deployment_history
CREATE TABLE IF NOT EXISTS `deployment_history` (
    `obj_uid` TEXT NOT NULL,
    `branch` INTEGER NOT NULL,
    `res_version` INTEGER NOT NULL,
    `seen_time` TEXT NOT NULL,
    `encoding` INTEGER NOT NULL,
    `payload` BLOB NOT NULL,
    PRIMARY KEY (`obj_uid`, `branch`, `res_version`)
) STRICT;

-- step: add-key deployment_history deployment_history_seen_time
CREATE INDEX IF NOT EXISTS `deployment_history_seen_time` ON `deployment_history` (`seen_time`);

-- step: create-table sparkjob
CREATE TABLE IF NOT EXISTS `sparkjob` (
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
    `evicted_time` TEXT,
    `content_hash` BLOB,
    `seq` INTEGER NOT NULL PRIMARY KEY
) STRICT;

-- step: add-key sparkjob sparkjob_uid
CREATE UNIQUE INDEX IF NOT EXISTS `sparkjob_uid` ON `sparkjob` (`uid`);

-- step: add-key sparkjob sparkjob_namespace_name
CREATE INDEX IF NOT EXISTS `sparkjob_namespace_name` ON `sparkjob` (`namespace`, `name`, `uid`);

-- step: add-key sparkjob sparkjob_create_time
CREATE INDEX IF NOT EXISTS `sparkjob_create_time` ON `sparkjob` (`create_time`, `uid`);

-- step: add-key sparkjob sparkjob_delete_time
CREATE INDEX IF NOT EXISTS `sparkjob_delete_time` ON `sparkjob` (`delete_time`, `uid`);

-- step: create-table sparkjob_labels
CREATE TABLE IF NOT EXISTS `sparkjob_labels` (
    `id` INTEGER NOT NULL PRIMARY KEY,
    `obj_uid` TEXT NOT NULL,
    `key` TEXT NOT NULL,
    `value` TEXT
) STRICT;

-- step: add-key sparkjob_labels sparkjob_labels_uid
CREATE INDEX IF NOT EXISTS `sparkjob_labels_uid` ON `sparkjob_labels` (`obj_uid`);

-- step: add-key sparkjob_labels sparkjob_labels_key_value
CREATE INDEX IF NOT EXISTS `sparkjob_labels_key_value` ON `sparkjob_labels` (`key`, `value`, `obj_uid`);

-- step: create-table sparkjob_annotations
CREATE TABLE IF NOT EXISTS `sparkjob_annotations` (
    `id` INTEGER NOT NULL PRIMARY KEY,
    `obj_uid` TEXT NOT NULL,
    `key` TEXT NOT NULL,
    `value` TEXT
) STRICT;

-- step: add-key sparkjob_annotations sparkjob_annotations_uid
CREATE INDEX IF NOT EXISTS `sparkjob_annotations_uid` ON `sparkjob_annotations` (`obj_uid`);
