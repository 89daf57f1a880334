//! Every copy of the schema is the authoritative file, to the byte, wherever it is mounted.

use super::manifest::documents;
use super::read;

#[test]
fn all_copies_are_the_authoritative_file() {
    let authoritative = read("schema/ingester_schema.sql");
    assert_eq!(read("schema/complete_ingester_schema.sql"), authoritative);
    assert_eq!(
        read("deploy/helm/kindex/files/schema/mysql-init-schema.sql"),
        authoritative
    );
    let job = documents("deploy/schema/ingester_schema_job.yaml");
    let mounted = &job[0]["data"];
    assert_eq!(mounted["ingester_schema.sql"], authoritative.as_str());
    let script = read("deploy/schema/init_db.sh");
    assert_eq!(mounted["init_db.sh"], script.as_str());
    assert_eq!(read("deploy/helm/kindex/files/schema/init_db.sh"), script);
}
