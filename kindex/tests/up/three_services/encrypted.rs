//! `kindex deletion` follows a service behind TLS, with certificates and token of the files that crds.toml names: one
//! process all along, while these are wrong, are put right and are renewed.

use super::can_run;
use super::front::{CERTIFICATE, Front};
use super::graph::{
    CLOUD_IDENTITY, CLOUD_IDENTITY_ELSEWHERE, OTHER_CLOUD_IDENTITY, OTHER_PROJECT, Object, PROJECT, PROJECTS,
};
use super::service::{Service, files};
use crate::process::wait_for;
use crate::workspace::write;

/// The certificate of nobody here.
const OTHER: &str = include_str!("../../../../tests/tests/api/tls/second.crt");

/// Those of the identity service, as the crds.toml of the region has them.
fn write_file(name: &str, text: &str) {
    write(&files(), &format!("region/identity-{name}"), text);
}

/// Until the ingester and the deletion graph have come to an object.
fn until_known(service: &Service, object: &Object) {
    wait_for(&format!("the finalizers of {object}"), || {
        let finalizers = service.finalizers(object);
        finalizers.contains("/kindex") && finalizers.contains("/deletion")
    });
}

fn until_gone(service: &Service, object: &Object) {
    wait_for(&format!("{object} to go"), || service.uid(object).is_empty());
}

/// Deletes the project once a cloud identity holds it.
fn delete_held(identity: &Service, region: &Service) {
    until_known(identity, &PROJECT);
    let held = format!(
        "cloudidentity.{}/{}",
        CLOUD_IDENTITY.group(),
        region.uid(&CLOUD_IDENTITY)
    );
    let path = format!("/api/v1/projects/default/{}/references/{held}", PROJECT.name);
    let place = ["--server", &identity.url, "replace", "--raw", &path, "-f", "-"];
    identity.run.kubectl(&place, "{}");
    identity.delete(&PROJECT);
    identity.until_phase(&PROJECT, "DELETING");
}

#[test]
fn a_service_behind_tls_is_followed_once_its_files_are_right_and_nothing_goes_before() {
    if !can_run() {
        return;
    }
    write_file("ca.crt", OTHER);
    write_file("token", "expired");
    let mut identity = Service::start_one("identity", &[]);
    let region = Service::start_one("region", &["--deletion=false"]);
    let front = Front::start(&identity.url, &["valid", "renewed"]);
    for service in [&identity, &region] {
        let objects = PROJECTS.manifest(service.name);
        service.run.kubectl(&["apply", "-f", "-"], &objects);
    }
    delete_held(&identity, &region);
    let flags = vec!["--service".to_owned(), format!("identity={}", front.url)];
    let deletion = region.start_deletion(flags);
    for object in [&CLOUD_IDENTITY, &OTHER_CLOUD_IDENTITY, &CLOUD_IDENTITY_ELSEWHERE] {
        until_known(&region, object);
    }
    region.delete(&OTHER_CLOUD_IDENTITY);
    let before = region.objects();

    // Whoever fails at the certificate sends no token.
    let place = format!("the service identity at {} does not answer: ", front.url);
    let is_said = |line: &str| line.contains(&place) && line.contains("invalid peer certificate");
    wait_for("the log to name the certificate", || {
        deletion.log().lines().any(is_said)
    });
    wait_for("people to be told why it waits", || {
        region.is_blocked(&OTHER_CLOUD_IDENTITY, "project.identity.example.com")
    });
    assert!(!front.was_asked("expired", "/"));
    assert_eq!(region.objects(), before, "nothing follows from silence");

    write_file("ca.crt", CERTIFICATE);
    wait_for("the token to be refused", || front.was_asked("expired", "/"));
    assert_eq!(region.objects(), before, "nor from a refusal");

    write_file("token", "valid");
    for (service, object) in [
        (&region, &CLOUD_IDENTITY),
        (&region, &OTHER_CLOUD_IDENTITY),
        (&identity, &PROJECT),
    ] {
        until_gone(service, object);
    }
    wait_for("the reference", || {
        identity
            .finalizers(&OTHER_PROJECT)
            .contains("cloudidentity.region.example.com/")
    });

    // From now on, the token is in use. As `kubectl create token` writes it, a line break ends the file.
    write_file("token", "renewed\n");
    identity.kill_and_restart();
    wait_for("the renewed token", || front.was_asked("renewed", "/api/v1/events/"));
    identity.delete(&OTHER_PROJECT);
    until_gone(&region, &CLOUD_IDENTITY_ELSEWHERE);
    until_gone(&identity, &OTHER_PROJECT);
    assert!(front.was_asked("renewed", "/api/v1/projects.identity.example.com/"));
}
