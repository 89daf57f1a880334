//! The names of a topic in NATS. Pure.
//!
//! A topic is one token: its dots become underscores, which neither plurals nor groups have, so no two topics meet.

use kindex_model::object::Uid;

/// The first token of all subjects.
const ROOT: &str = "kindex";

/// The stream of a topic and its subjects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    token: String,
}

impl Names {
    /// The names of a topic, `plural.group`.
    pub fn of(topic: &str) -> Self {
        Self {
            token: escaped(topic).replace('.', "_"),
        }
    }

    /// The stream.
    pub fn stream(&self) -> String {
        format!("{ROOT}-events-{}", self.token)
    }

    /// Where the event of an object is sent.
    pub fn sent(&self, uid: &Uid) -> String {
        format!("{ROOT}.events.{}.{}", self.token, token(uid))
    }

    /// All subjects to which events are sent.
    pub fn sent_all(&self) -> String {
        format!("{ROOT}.events.{}.*", self.token)
    }

    /// The subject under which the server stores what is sent to [`sent_all`](Self::sent_all), in one of so many
    /// partitions.
    pub fn stored_as(&self, partitions: u32) -> String {
        let token = &self.token;
        format!("{ROOT}.events.{token}.{{{{partition({partitions},1)}}}}.{{{{wildcard(1)}}}}")
    }

    /// The stored events of a partition.
    pub fn partition(&self, number: u32) -> String {
        format!("{ROOT}.events.{}.{number}.*", self.token)
    }

    /// The stored events of all partitions.
    pub fn all_partitions(&self) -> String {
        format!("{ROOT}.events.{}.*.*", self.token)
    }

    /// How many partitions there are where [`stored_as`](Self::stored_as) gave this subject.
    pub fn partitions(stored_as: &str) -> Option<u32> {
        let (_, arguments) = stored_as.split_once("partition(")?;
        let (number, _) = arguments.split_once(',')?;
        number.parse().ok().filter(|number| *number > 0)
    }

    /// The partition, of so many, in which the server stores the event of an object: by the hash FNV-1a of its token.
    pub fn partition_of(uid: &Uid, partitions: u32) -> u32 {
        let hash = token(uid).bytes().fold(0x811c_9dc5_u32, |hash, byte| {
            (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
        });
        hash % partitions
    }

    /// The mark of the outbox up to which the stream is fed.
    pub fn mark(&self) -> String {
        format!("{ROOT}.mark.{}", self.token)
    }

    /// The claim of the process that feeds the stream.
    pub fn feeder(&self) -> String {
        format!("{ROOT}.feeder.{}", self.token)
    }
}

/// An object in a subject.
fn token(uid: &Uid) -> String {
    escaped(&uid.0).replace('.', "%2E")
}

/// Bytes that a subject or a stream's name may not have, as `%` and two digits.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' => escaped.push(char::from(byte)),
            byte => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_topics_share_a_stream_or_a_subject() {
        let topics = ["runs.a.b", "runs.a-b", "runs_a.b", "runs", "runs.a"];
        let names = topics.map(Names::of);
        for (one, name) in names.iter().enumerate() {
            for other in &names[one + 1..] {
                assert_ne!(name.stream(), other.stream());
                assert_ne!(name.sent_all(), other.sent_all());
            }
        }
    }

    #[test]
    fn the_number_of_partitions_is_read_from_where_events_are_stored() {
        let names = Names::of("runs.example.com");
        assert_eq!(Names::partitions(&names.stored_as(16)), Some(16));
        for other in ["kindex.events.runs.*", "{{partition(0,1)}}", "{{partition(16)}}"] {
            assert_eq!(Names::partitions(other), None, "{other}");
        }
    }

    #[test]
    fn an_object_is_one_token_whatever_its_uid_holds() {
        let names = Names::of("runs.example.com");
        let subject = names.sent(&Uid::from("a.b*c> d\u{e9}"));
        assert_eq!(subject, "kindex.events.runs_example_com.a%2Eb%2Ac%3E%20d%C3%A9");
    }
}
