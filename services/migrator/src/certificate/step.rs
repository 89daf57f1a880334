//! What is due: pure.

use jiff::Timestamp;

/// When something holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Validity {
    /// The first moment.
    pub from: Timestamp,
    /// The last one.
    pub until: Timestamp,
}

impl Validity {
    /// Whether two thirds of the time are over: what is left is time enough to try again.
    fn is_due(&self, now: Timestamp) -> bool {
        let third = self.until.duration_since(self.from) / 3;
        self.until.duration_since(now) <= third
    }

    fn holds(&self, now: Timestamp) -> bool {
        (self.from..=self.until).contains(&now)
    }
}

/// What of a stored authority and certificate a decision depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stored {
    /// Of the newest authority, which signs.
    pub authority: Validity,
    /// Of the certificate.
    pub certificate: Validity,
    /// Whether the newest authority signed the certificate.
    pub is_of_newest: bool,
    /// Whether the certificate is for the host that is asked.
    pub is_for_host: bool,
    /// Whether every definition lists all authorities.
    pub published: bool,
}

/// What is to be made anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing.
    Keep,
    /// A certificate, of the newest authority.
    Certificate,
    /// An authority. It signs nothing before every definition lists it; those that hold still stay listed.
    Authority,
    /// Both: nothing is there that can be gone on from.
    Both,
}

/// Decides what is due. A certificate is signed anew by another authority only once API servers believe that one.
pub(super) fn step(stored: &Stored, now: Timestamp) -> Step {
    if !stored.authority.holds(now) {
        return Step::Both;
    }
    if !stored.certificate.holds(now) || !stored.is_for_host {
        return Step::Certificate;
    }
    if stored.authority.is_due(now) {
        return Step::Authority;
    }
    let due = stored.certificate.is_due(now) || !stored.is_of_newest;
    match due && stored.published {
        true => Step::Certificate,
        false => Step::Keep,
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    fn day(number: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_hours(24 * number)
    }

    fn days(from: i64, until: i64) -> Validity {
        Validity {
            from: day(from),
            until: day(until),
        }
    }

    fn stored() -> Stored {
        Stored {
            authority: days(0, 3_000),
            certificate: days(0, 90),
            is_of_newest: true,
            is_for_host: true,
            published: true,
        }
    }

    #[test]
    fn a_certificate_is_renewed_after_two_thirds_of_its_time() {
        assert_eq!(step(&stored(), day(59)), Step::Keep);
        assert_eq!(step(&stored(), day(60)), Step::Certificate);
        assert_eq!(step(&stored(), day(91)), Step::Certificate);
    }

    #[test]
    fn an_authority_is_renewed_before_its_last_certificates_end() {
        let certificate = days(1_990, 2_080);
        let of = |day_number| {
            step(
                &Stored {
                    certificate,
                    ..stored()
                },
                day(day_number),
            )
        };
        assert_eq!([1_999, 2_000].map(of), [Step::Keep, Step::Authority]);
        assert_eq!(of(3_001), Step::Both);
    }

    #[test]
    fn a_new_authority_signs_once_it_is_published() {
        let renewed = Stored {
            is_of_newest: false,
            published: false,
            ..stored()
        };
        assert_eq!(step(&renewed, day(1)), Step::Keep);
        let published = Stored {
            published: true,
            ..renewed
        };
        assert_eq!(step(&published, day(1)), Step::Certificate);
        // Who cannot be asked at all has nothing to lose.
        assert_eq!(step(&renewed, day(91)), Step::Certificate);
    }

    #[test]
    fn another_host_takes_another_certificate_at_once() {
        let moved = Stored {
            is_for_host: false,
            published: false,
            ..stored()
        };
        assert_eq!(step(&moved, day(1)), Step::Certificate);
    }
}
