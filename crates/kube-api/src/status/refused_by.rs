//! Who refused a write, as the message of the refusal says: its code and reason may be the same for an account without
//! the right and for a policy, and a webhook chooses both.

/// How kube-apiserver begins the message of a webhook's denial. Its code is the webhook's choice, and says nothing of
/// the object.
/// <https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#response>
const WEBHOOK: &str = "admission webhook ";
/// What the message of a policy's denial has after the object.
/// <https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/>
const POLICY: &str = " is forbidden: ValidatingAdmissionPolicy '";
/// What the message has after the object, whichever authorizer lacks a rule for the account.
/// <https://kubernetes.io/docs/reference/access-authn-authz/authorization/>
const ACCOUNT: &str = " is forbidden: User ";

/// Who refused a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusedBy {
    /// The account does not have the right, whatever is written.
    Authorization,
    /// An admission webhook or policy, which may let other objects pass.
    Admission,
}

impl RefusedBy {
    /// As the message of a refusal says; `None` where it says another reason.
    pub fn of(message: &str) -> Option<Self> {
        if is_webhook_denial(message) || message.contains(POLICY) {
            return Some(Self::Admission);
        }
        let (_, account) = message.split_once(ACCOUNT)?;
        account.contains(" cannot ").then_some(Self::Authorization)
    }

    /// The name of the webhook or policy that denied a write, as the message of the denial says. Another one has
    /// reasons of its own.
    pub fn admission(message: &str) -> Option<&str> {
        if let Some(webhook) = message.strip_prefix(WEBHOOK) {
            return webhook.split('"').nth(1);
        }
        // Its first quote is before that.
        let (_, policy) = message.split_once(POLICY)?;
        policy.split('\'').next()
    }
}

/// Whether an admission webhook denied the request.
pub(super) fn is_webhook_denial(message: &str) -> bool {
    message.starts_with(WEBHOOK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_denial_names_the_webhook_or_policy() {
        for (message, expected) in [
            (
                "admission webhook \"a.b.c\" denied the request: not \"x\"",
                Some("a.b.c"),
            ),
            (
                "things.example.com \"a\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: \
                 no",
                Some("p"),
            ),
            (
                "things.example.com \"a\" is forbidden: User \"u\" cannot patch it",
                None,
            ),
            ("", None),
        ] {
            assert_eq!(RefusedBy::admission(message), expected, "{message}");
        }
    }

    #[test]
    fn a_message_says_who_refused_a_write() {
        for (message, expected) in [
            (
                "things.example.com \"a\" is forbidden: User \"u\" cannot patch resource \"things\" in API group \
                 \"example.com\" in the namespace \"n\"",
                Some(RefusedBy::Authorization),
            ),
            (
                "admission webhook \"w\" denied the request: it is forbidden: User \"u\" cannot change it",
                Some(RefusedBy::Admission),
            ),
            (
                "things.example.com \"a\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: \
                 no",
                Some(RefusedBy::Admission),
            ),
            ("things.example.com \"a\" is forbidden: exceeded quota: q", None),
            ("Thing.example.com \"a\" is invalid: spec.size: Required value", None),
            ("", None),
        ] {
            assert_eq!(RefusedBy::of(message), expected, "{message}");
        }
    }
}
