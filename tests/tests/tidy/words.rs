//! One term for each concept, from the glossary: words that it retired come back in no name, in code and in scripts.
//! Knows nothing of what people read.

use super::expect_none;
use super::terms::{others, sources};

/// What no type, function or variable has in its name, with the term for it.
const IN_NAMES: &[(&str, &str)] = &[
    ("bearer", "target, or bearer_token"),
    ("bearers", "targets"),
    ("bears", "has_reference or has_finalizer"),
    ("borne", "has_reference, or references"),
    ("buried", "tombstone"),
    ("buries", "needs_tombstone"),
    ("bury", "make_tombstone"),
    ("conduct", "settings"),
    ("cursor", "position or continue token"),
    ("cursors", "positions or continue tokens"),
    ("deed", "operation, attributes or action"),
    ("deeds", "operations or actions"),
    ("desk", "replica"),
    ("door", "listener, server or admission"),
    ("evicted", "archived, or is_evicting while it leaves"),
    ("fate", "action"),
    ("fates", "actions"),
    ("glance", "state"),
    ("guard", "finalizer, or version check"),
    ("guarded", "has_finalizer or with_finalizer"),
    ("guarding", "with_graph, or what adds the finalizer"),
    ("incarnation", "row"),
    ("incarnations", "rows_of_name"),
    ("manner", "options"),
    ("misspelt", "misspelled"),
    ("mistake", "error"),
    ("mistakes", "errors"),
    ("outlived", "superseded"),
    ("patience", "retry budget, or the limit of a wait"),
    ("patiently", "with retries"),
    ("recognise", "recognize, or find"),
    ("recognised", "recognized, or found"),
    ("retold", "repeated"),
    ("sighting", "observed object"),
    ("sightings", "observed objects"),
    ("spelt", "spelled"),
    ("standing", "state, comparison or presence"),
    ("stray", "orphaned"),
    ("strays", "orphaned"),
    ("tell", "report, send or log"),
    ("texture", "accounting"),
    ("told", "reported, received or sent"),
    ("unguard", "release"),
    ("unguarded", "without_finalizer"),
    ("unsaid", "absent or lost"),
    ("unsay", "branch_off_beyond"),
    ("untold", "no progress"),
    ("useless", "invalid"),
    ("whereabouts", "location"),
    ("wish", "action"),
    ("wishes", "options"),
];

/// What nothing in a folder has in its name, which elsewhere is another concept, with the term for it.
const IN_FOLDERS: &[(&str, &str, &str)] = &[
    ("services/deletion/", "claim", "reference"),
    ("services/deletion/", "claims", "references"),
];

/// What no type is called, although its parts and values may be, with the term for it.
const AS_TYPES: &[(&str, &str)] = &[
    ("Ahead", "Prefetch"),
    ("Alive", "LiveObjects, or what lives"),
    ("Among", "Scope"),
    ("Asked", "Request, Context, or what was answered"),
    ("Beat", "Heartbeat"),
    ("Behind", "Access"),
    ("Broken", "Violation"),
    ("By", "Converter, or what does it"),
    ("Collected", "BatchOutcome, or what was deleted"),
    ("Cursor", "Position, of what is read"),
    ("Doubt", "ValueCheck"),
    ("Each", "what each one is"),
    ("Ends", "what its drop does"),
    ("Entrance", "Admission"),
    ("Fed", "what is fed"),
    ("Feeding", "Feeder"),
    ("Figures", "Metrics, Rates, or what is measured"),
    ("Followed", "what is followed"),
    ("Hall", "Harness"),
    ("Handed", "what is handed over"),
    (
        "Held",
        "what is held, such as HeldObject, or what holding it has come to",
    ),
    ("Inquiry", "what stays known"),
    ("Listening", "what listens"),
    ("Looked", "Survey"),
    ("Looker", "Lookup"),
    ("Misfit", "Mismatch"),
    ("Most", "Limits"),
    ("News", "Event"),
    ("On", "State"),
    ("OneMore", "GaugeIncrement"),
    ("Over", "Transport, or what there is too much of"),
    ("Own", "what is our own"),
    ("Passing", "InFlight"),
    ("Place", "Location, Position or what is placed"),
    ("PutBack", "Repair"),
    ("Rogue", "the fault that it stands for"),
    ("Said", "Answer or Result"),
    ("Seat", "Slot"),
    ("Seeing", "Observation"),
    ("Share", "PartitionAssignment, or the part of what"),
    ("Sharer", "AdmissionKey"),
    ("Since", "what changed since"),
    ("Sought", "Query, of what is sought"),
    ("Spoken", "HolderResource"),
    ("Still", "what is paused"),
    ("Ticked", "Report"),
    ("TooOften", "RateExceeded"),
    ("Trouble", "Failure"),
    ("Troubles", "Failures"),
    ("TurnedAway", "RejectionReason"),
    ("Way", "Method, Endpoint or Behavior"),
    ("Who", "Identity"),
    ("Whose", "Owner, or Rights"),
    ("Words", "what the texts are"),
];

/// Of these, what no type is called at the end of its name either.
const AT_THE_END: &[&str] = &["Place", "Said", "Seat", "Trouble", "Way", "Words"];

/// What no function is called, although its parameters and variables may be, with the term for it.
const AS_FUNCTIONS: &[(&str, &str)] = &[
    ("be_brief", "what is limited"),
    ("becomes_another", "differs_in_content"),
    ("begin_along", "begin_sweep"),
    ("blame", "find_cause"),
    ("doubt_names", "warn_of_unknown_was"),
    ("doubtful", "what is not sure"),
    ("farewell", "end_message"),
    ("goes_along", "is_deleted_with"),
    ("gone_is_fine", "ignore_not_found"),
    ("heard", "on_watch_event"),
    ("is_of_use", "is_needed, is_current, or is_graph_finalizer"),
    ("know_and_again", "observe_and_repeat"),
    ("may_not_speak", "forbidden_holder"),
    ("may_pass", "is_transient, or is_retryable"),
    ("on_its_way_out", "leaving_object"),
    ("outlasts", "keeps_direct_change"),
    ("prospect", "describe_consequence"),
    ("refuse_another_always", "watch_for_other_cluster"),
    ("saw", "record_event"),
    ("say_since", "was_released_since"),
    ("says_since", "reports_release_since"),
    ("stands_still", "is_stalled, or wait_until_stalled"),
    ("sweep_along", "sweep_holders"),
    ("take_along", "delete_with_holders"),
    ("took", "advance"),
    ("turned", "restart_from, or with_partitions"),
    ("turned_away", "count_rejection"),
    ("unhurried", "without the limit"),
    ("vouched", "from_front_proxy"),
    ("waits_as_it_should", "is_delayed"),
];

/// Names with such words that are not chosen here: those of libraries, of lock guards, and of fields, values and
/// columns that users see.
const GIVEN: &[&str] = &[
    "Cursor",
    "DropGuard",
    "EVICTED_TIME",
    "Evicted",
    "EvictedTime",
    "MutexGuard",
    "OwnedMutexGuard",
    "RwLockReadGuard",
    "RwLockWriteGuard",
    "_guard",
    "drop_guard",
    "evicted",
    "evicted_time",
    "guard",
];

/// A longer name is a sentence, as those of tests are: ordinary English.
const NAME_WORDS_MAX: usize = 4;

/// The words of a name, in small letters: those of `FeedEntry` and `feed_entry` are the same.
fn words_of(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut begins = false;
    for letter in name.chars() {
        if letter == '_' || (begins && letter.is_ascii_uppercase()) {
            words.push(String::new());
        }
        begins = !letter.is_ascii_uppercase();
        if let Some(word) = words.last_mut().filter(|_| letter != '_') {
            word.push(letter.to_ascii_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Whether the last word of a name is this one.
fn ends_with(name: &str, word: &str) -> bool {
    words_of(name)
        .last()
        .is_some_and(|last| *last == word.to_ascii_lowercase())
}

/// Whether a word is among those of a name. The bearer of a token is HTTP's.
fn has_word(words: &[String], word: &str) -> bool {
    let mut at = words.iter().enumerate().filter(|(_, own)| *own == word);
    at.any(|(at, _)| word != "bearer" || words.get(at + 1).is_none_or(|next| next != "token"))
}

/// The retired terms among the names of a line of code, with what to call them.
fn retired_names(line: &str) -> Vec<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let names: Vec<&str> = line.split(|c| !is_part(c)).filter(|name| !name.is_empty()).collect();
    let mut found = Vec::new();
    for (at, name) in names.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| names[before]);
        let is_type = matches!(before, Some("struct" | "enum" | "trait" | "type" | "union"));
        let is_called = |retired: &str| retired == *name || (AT_THE_END.contains(&retired) && ends_with(name, retired));
        let as_type = AS_TYPES.iter().filter(|(retired, _)| is_type && is_called(retired));
        found.extend(as_type.map(|(_, instead)| (*name, *instead)));
        let as_function = AS_FUNCTIONS.iter();
        let as_function = as_function.filter(|(retired, _)| before == Some("fn") && retired == name);
        found.extend(as_function.map(|(_, instead)| (*name, *instead)));
        let words = words_of(name);
        if words.len() <= NAME_WORDS_MAX && !GIVEN.contains(name) {
            let retired = IN_NAMES.iter().filter(|(retired, _)| has_word(&words, retired));
            found.extend(retired.map(|(_, instead)| (*name, *instead)));
        }
    }
    let finding = |(name, instead): (&str, &str)| format!("`{name}` has a retired term: say `{instead}`");
    found.into_iter().map(finding).collect()
}

/// The same of those that are retired in the folder of a file alone.
fn retired_in_folder(path: &str, line: &str) -> Vec<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let names = line.split(|c| !is_part(c)).map(|name| (name, words_of(name)));
    let retired = |(name, words): (&str, Vec<String>)| {
        let mut here = IN_FOLDERS.iter().filter(|(folder, ..)| path.starts_with(folder));
        let found = here.find(|(_, word, _)| has_word(&words, word));
        found.map(|(_, _, instead)| format!("`{name}` has a retired term: say `{instead}`"))
    };
    names.filter_map(retired).collect()
}

#[test]
fn names_are_terms_of_the_glossary() {
    let mut findings = Vec::new();
    for (file, rust) in sources() {
        for (number, line) in rust.code.lines().enumerate() {
            let found = [retired_names(line), retired_in_folder(&file.path, line)].concat();
            findings.extend(found.iter().map(|what| file.finding(number, what)));
        }
    }
    expect_none(findings);
}

/// The names that a line of a script gives to functions and variables.
fn named_in_script(line: &str) -> String {
    let words = line.split_whitespace();
    let named = words.filter_map(|word| word.split_once("()").or_else(|| word.split_once('=')));
    named.map(|(name, _)| name).collect::<Vec<_>>().join(" ")
}

#[test]
fn names_in_scripts_are_terms_of_the_glossary() {
    let mut findings = Vec::new();
    for file in others().filter(|file| file.text.starts_with("#!") || file.path.ends_with(".sh")) {
        for (number, line) in file.text.lines().enumerate() {
            let found = retired_names(&named_in_script(line)).into_iter();
            findings.extend(found.map(|what| file.finding(number, &what)));
        }
    }
    expect_none(findings);
}

/// A comparison of whole names, or of one spelling, would miss most of these.
#[test]
fn a_retired_term_is_found_in_compounds() {
    for line in [
        "let all_told = open();",
        "let _told_later = open();",
        "world.stray_rows();",
        "fn stray_holders()",
        "const FAILURES_TOLD: u32 = 3;",
        "Class::ReferenceStray",
        "retries.patiently()",
        "enum Place {",
        "pub(crate) struct Words<'a> {",
        "Bug::BuryAnyway",
        "enum Whereabouts {",
        "type On = State<Api>;",
        "struct Rogue;",
        "let unguarded = head();",
        "let is_guarded = head();",
        "Step::Guard => release(),",
        "stage.create_evicted(name)",
        "fn evicted_object(uid: &str)",
        "follower.cursor = last;",
        "struct Cursor {",
        "struct Figures {",
        "let is_spelt = true;",
        "fn misspelt_names() {}",
        "enum MigrationStanding {",
        "trait Looker {",
        "struct ClusterPlace {",
        "pub struct UnderWay;",
        "enum StoreTrouble {",
        "    async fn stands_still(&self) {",
        "let bearer = target();",
        "self.keep_bearer(place);",
        "graph.bearers(&name)",
        "let bearer_of_token = target();",
        "if object.is_borne_by(name) {",
        "Named::Present { bears, .. } => {}",
        "fn waits_as_it_should(&self) -> bool {",
        "    fn goes_along(edges: &[Edge]) -> bool {",
        "pub type Held = Arc<Mutex<BTreeSet<Uid>>>;",
        "fn may_pass(error: &Error) -> bool {",
    ] {
        assert_eq!(retired_names(line).len(), 1, "{line}: {:?}", retired_names(line));
    }
}

#[test]
fn terms_of_the_field_and_sentences_are_no_retired_names() {
    for line in [
        "let rule = NotOlderThan;",
        "Step::Place { target }",
        "struct Placed;",
        "struct Passwords;",
        "Step::UnderWay(_) => {}",
        "let unhurried = retries.is_slow();",
        "fn a_watch_is_told_of_the_objects_of_its_namespace_alone()",
        "impl Words {",
        "Saving::Since { version }",
        "fn a_restoration_is_recognised_and_may_be_completed()",
        "mod manners;",
        "let _guard = lock.lock();",
        "held: MutexGuard<'_, Rows>,",
        "let mut text = io::Cursor::new(bytes);",
        "evicted: rule.evicted,",
        "row.evicted_time.is_some()",
        "let outstanding = 1;",
        "caller.bearer_token.is_some()",
        "struct BearerToken;",
        "forbears();",
        "let heard = self.heard;",
        "Checkpoint::Held(version) => {}",
        "let took = begun.elapsed();",
        "fn what_is_evicted_twice_stays_archived()",
    ] {
        assert_eq!(retired_names(line), [""; 0], "{line}");
    }
}

#[test]
fn a_term_of_another_concept_is_retired_in_its_folder_alone() {
    for line in ["struct Claim {", "let left = plain_claims(input);", "input.claims"] {
        assert_eq!(
            retired_in_folder("services/deletion/src/graph.rs", line).len(),
            1,
            "{line}"
        );
        assert_eq!(retired_in_folder("crates/serve/src/budget.rs", line), [""; 0], "{line}");
    }
    assert_eq!(
        retired_in_folder("services/deletion/src/graph.rs", "fn reclaimed()"),
        [""; 0]
    );
}

/// Words of a message are no names.
#[test]
fn a_retired_name_is_found_in_scripts() {
    for line in ["patiently() {", "    local tries=3 patience=$1"] {
        assert_eq!(retired_names(&named_in_script(line)).len(), 1, "{line}");
    }
    for line in ["    echo 'Clients are told to retry.'", "retry as_root apt-get update"] {
        assert_eq!(retired_names(&named_in_script(line)), [""; 0], "{line}");
    }
}
