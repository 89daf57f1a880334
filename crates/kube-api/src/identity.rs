//! Whether a request means the object that is there: what an update says of its name, uid and version, and what a
//! deletion expects of them.

use serde_json::Value;

use crate::meta;
use crate::status::{GroupResource, Status};

/// What a deletion expects of the object: `metav1.Preconditions`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Preconditions<'a> {
    /// The uid that it has to have.
    pub uid: Option<&'a str>,
    /// The version that it has to have.
    pub resource_version: Option<&'a str>,
}

impl Preconditions<'_> {
    /// Whether the object of this name, uid and version is the one that is meant.
    ///
    /// # Errors
    /// 409 that names `kind`, as the API server does here, where it names the resource elsewhere.
    pub fn check(&self, group: &str, kind: &str, name: &str, uid: &str, version: &str) -> Result<(), Status> {
        let checks = [
            ("UID", self.uid, uid, "deleted and then recreated"),
            ("ResourceVersion", self.resource_version, version, "modified"),
        ];
        for (what, wanted, found, happened) in checks {
            if let Some(wanted) = wanted
                && wanted != found
            {
                let why = format!(
                    "the {what} in the precondition ({wanted}) does not match the {what} in record ({found}). \
                     The object might have been {happened}"
                );
                return Err(Status::conflict(GroupResource { group, plural: kind }, name, &why));
            }
        }
        Ok(())
    }
}

/// Whether `sent`, which is to replace `current`, is meant for this version of this object. A namespace that was sent
/// for an object without one is ignored: the caller removes it.
///
/// # Errors
/// 400 when it has no name, or the name or namespace of another object; 409 when it has another uid or version; 422
/// when it has no version and `is_version_required`.
pub fn check_update(
    resource: GroupResource<'_>,
    current: &Value,
    sent: &Value,
    is_version_required: bool,
) -> Result<(), Status> {
    let name = meta::name(current);
    match meta::name(sent) {
        "" => return Err(Status::name_missing(name)),
        other if other != name => return Err(Status::name_differs(other, name)),
        _ => {}
    }
    let (namespace, sent_namespace) = (meta::namespace(current), meta::namespace(sent));
    if !namespace.is_empty() && !sent_namespace.is_empty() && sent_namespace != namespace {
        return Err(Status::namespace_differs());
    }
    let (uid, sent_uid) = (meta::uid(current), meta::uid(sent));
    if !sent_uid.is_empty() && sent_uid != uid {
        let why = format!("Precondition failed: UID in precondition: {sent_uid}, UID in object meta: {uid}");
        return Err(Status::conflict(resource, name, &why));
    }
    match meta::resource_version(sent) {
        "" | "0" if is_version_required => Err(Status::version_missing(resource, name)),
        "" | "0" => Ok(()),
        version if version.parse::<u64>().is_err() => Err(Status::unexplained(format!(
            "strconv.ParseUint: parsing {version:?}: invalid syntax"
        ))),
        version if version == meta::resource_version(current) => Ok(()),
        _ => Err(Status::modified(resource, name)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const WIDGETS: GroupResource<'_> = GroupResource {
        group: "example.com",
        plural: "widgets",
    };

    #[test]
    fn an_update_says_which_object_and_which_version_it_means() {
        let current = json!({"metadata": {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "7"}});
        let check = |metadata: Value, is_version_required| {
            let checked = check_update(WIDGETS, &current, &json!({"metadata": metadata}), is_version_required);
            checked.map_err(|status| (status.code, status.message))
        };
        let conflict = |why: &str| {
            let message = format!("Operation cannot be fulfilled on widgets.example.com \"a\": {why}");
            Err((409, message))
        };
        assert_eq!(check(json!({"name": "a", "resourceVersion": "7"}), true), Ok(()));
        assert_eq!(check(json!({"name": "a", "namespace": "n", "uid": "u"}), false), Ok(()));
        let missing = "the name of the object (a based on URL) was undeterminable: name must be provided";
        assert_eq!(check(json!({}), false), Err((400, missing.to_owned())));
        let other = "the name of the object (b) does not match the name on the URL (a)";
        assert_eq!(check(json!({"name": "b"}), false), Err((400, other.to_owned())));
        let elsewhere = "the namespace of the provided object does not match the namespace sent on the request";
        assert_eq!(
            check(json!({"name": "a", "namespace": "m"}), false),
            Err((400, elsewhere.to_owned()))
        );
        assert_eq!(
            check(json!({"name": "a", "uid": "v"}), false),
            conflict("Precondition failed: UID in precondition: v, UID in object meta: u")
        );
        assert_eq!(
            check(json!({"name": "a", "resourceVersion": "6"}), true),
            conflict("the object has been modified; please apply your changes to the latest version and try again")
        );
        for version in ["", "0"] {
            let refused = check(json!({"name": "a", "resourceVersion": version}), true).unwrap_err();
            let message = "widgets.example.com \"a\" is invalid: metadata.resourceVersion: Invalid value: 0: must be \
                           specified for an update";
            assert_eq!(refused, (422, message.to_owned()));
        }
        assert_eq!(
            check(json!({"name": "a", "resourceVersion": "x"}), true).unwrap_err().0,
            500
        );
    }

    #[test]
    fn a_deletion_means_the_uid_and_the_version_that_it_names() {
        let check = |uid, resource_version| {
            let preconditions = Preconditions { uid, resource_version };
            let checked = preconditions.check("example.com", "Widget", "a", "u", "7");
            checked.map_err(|status| (status.code, status.message))
        };
        assert_eq!(check(None, None), Ok(()));
        assert_eq!(check(Some("u"), Some("7")), Ok(()));
        for (uid, version, why) in [
            (
                Some("v"),
                Some("7"),
                "the UID in the precondition (v) does not match the UID in record (u). The object might have been \
                 deleted and then recreated",
            ),
            (
                Some("u"),
                Some("6"),
                "the ResourceVersion in the precondition (6) does not match the ResourceVersion in record (7). The \
                 object might have been modified",
            ),
        ] {
            let message = format!("Operation cannot be fulfilled on Widget.example.com \"a\": {why}");
            assert_eq!(check(uid, version), Err((409, message)));
        }
    }
}
