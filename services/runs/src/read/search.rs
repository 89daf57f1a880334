//! `SearchRuns`: each word of a query is the beginning of a word of the run, and where it is found says how well.

use std::cmp::Reverse;

use super::filter::Filter;
use super::listing::page_size;
use super::pages::{self, PagePosition};
use crate::domain::ProjectName;
use crate::limits;
use crate::refusal::{Code, Refusal};
use crate::validate;
use crate::wire::v1::SearchRunsRequest;

/// Parts of a run that a result shows as its reason.
const HIGHLIGHTS_MAX: usize = 5;
/// Characters of a text that a result shows.
const HIGHLIGHT_CHARACTERS_MAX: usize = 120;

/// A request, checked.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Search {
    pub(super) project: ProjectName,
    pub(super) filter: Filter,
    pub(super) words: Vec<String>,
    pub(super) limit: usize,
    pub(super) after: Option<PagePosition>,
    pub(super) fingerprint: String,
}

impl Search {
    /// Of a request.
    pub(super) fn of(mut request: SearchRunsRequest) -> Result<Self, Refusal> {
        let project = validate::project(request.project_id.as_ref())?;
        let limit = limits::SEARCH_QUERY;
        if !limit.holds(&request.query) {
            let message = format!("query: a {} has at most {} characters", limit.of, limit.max);
            return Err(Refusal::new(Code::InvalidArgument, "TOO_LONG", message).at("query"));
        }
        let size = page_size(request.page_size, limits::SEARCH_PAGE)?;
        let page_token = std::mem::take(&mut request.page_token);
        request.page_size = 0;
        let fingerprint = pages::fingerprint(&request);
        Ok(Self {
            project,
            after: pages::read(&fingerprint, &page_token)?,
            words: words(&request.query).collect(),
            filter: Filter::of(request.filters)?,
            limit: size,
            fingerprint,
        })
    }
}

/// A run and what words are searched in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Texts {
    pub(super) number: i64,
    pub(super) created_at: i64,
    pub(super) run_id: String,
    pub(super) name: String,
    pub(super) description: String,
    /// Keys and values of tags.
    pub(super) tags: Vec<(String, String)>,
}

/// How well a run matches.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Match {
    pub(super) number: i64,
    /// In millionths, so that equal ones are equal.
    pub(super) score: i64,
    pub(super) highlights: Vec<String>,
}

/// A page of matches, of runs that come some at a time: no more of them are kept than the page has.
#[derive(Debug)]
pub(super) struct Matches {
    words: Vec<String>,
    after: Option<PagePosition>,
    limit: usize,
    /// The best ones behind the position, one more than the page has.
    best: Vec<Match>,
    /// All matches, those before the page too.
    pub(super) total: usize,
}

impl Matches {
    /// None yet.
    pub(super) fn of(search: &Search) -> Self {
        Self {
            words: search.words.clone(),
            after: search.after.clone(),
            limit: search.limit,
            best: Vec::new(),
            total: 0,
        }
    }

    /// Adds those of these runs that have all words.
    pub(super) fn add(&mut self, runs: impl IntoIterator<Item = Texts>) {
        for found in runs.into_iter().filter_map(|run| score(&self.words, &run)) {
            self.total += 1;
            if is_behind(&found, self.after.as_ref()) {
                self.best.push(found);
            }
        }
        self.best.sort_by_key(rank);
        self.best.truncate(self.limit + 1);
    }

    /// The page, the best first and of equal ones the newest, and whether it is the last.
    pub(super) fn page(mut self) -> (Vec<Match>, bool) {
        let is_last = self.best.len() <= self.limit;
        self.best.truncate(self.limit);
        (self.best, is_last)
    }
}

fn rank(found: &Match) -> (Reverse<i64>, Reverse<i64>) {
    (Reverse(found.score), Reverse(found.number))
}

fn is_behind(found: &Match, after: Option<&PagePosition>) -> bool {
    let Some(after) = after else { return true };
    let pages::SortKey::Number(score) = after.key else {
        return false;
    };
    rank(found) > (Reverse(score), Reverse(after.number))
}

/// The words of a text in lower case.
fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|character: char| !character.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
}

/// A text of a run: what it is called, what it says, how much it counts.
type Part<'r> = (&'static str, &'r str, f64);

fn score(words: &[String], run: &Texts) -> Option<Match> {
    let mut parts: Vec<Part<'_>> = vec![("name", &run.name, 1.0), ("run_id", &run.run_id, 0.8)];
    for (key, value) in &run.tags {
        parts.extend([("tag", key.as_str(), 0.6), ("tag", value.as_str(), 0.7)]);
    }
    parts.push(("description", &run.description, 0.5));
    let mut total = 0.0;
    let mut highlights: Vec<String> = Vec::new();
    for word in words {
        let (weight, part) = best(word, &parts)?;
        total += weight;
        let highlight = highlight(part);
        if highlights.len() < HIGHLIGHTS_MAX && !highlights.contains(&highlight) {
            highlights.push(highlight);
        }
    }
    let score = match words.len() {
        0 => 0.0,
        count => total / count as f64,
    };
    Some(Match {
        number: run.number,
        score: (score * 1e6) as i64,
        highlights,
    })
}

/// Where a word is found best, and how much that counts: a whole word counts more than its beginning.
fn best<'p, 'r>(word: &str, parts: &'p [Part<'r>]) -> Option<(f64, &'p Part<'r>)> {
    let weight = |part: &Part<'_>| {
        let of_word = |own: String| match () {
            () if own == word => part.2,
            () if own.starts_with(word) => part.2 * 0.8,
            () => 0.0,
        };
        words(part.1).map(of_word).fold(0.0, f64::max)
    };
    let weighed = parts.iter().map(|part| (weight(part), part));
    let best = weighed.max_by(|left, right| left.0.total_cmp(&right.0))?;
    (best.0 > 0.0).then_some(best)
}

fn highlight(part: &Part<'_>) -> String {
    let shown: String = part.1.chars().take(HIGHLIGHT_CHARACTERS_MAX).collect();
    format!("{}: {shown}", part.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::v1::ProjectId;

    fn run(number: i64, name: &str, description: &str) -> Texts {
        Texts {
            number,
            created_at: number,
            run_id: format!("run-{number}"),
            name: name.to_owned(),
            description: description.to_owned(),
            tags: vec![("model".to_owned(), "ViT-B16".to_owned())],
        }
    }

    /// A page of what is found in runs that come two at a time.
    fn matches(query: &str, after: Option<PagePosition>, limit: usize, runs: &[Texts]) -> Matches {
        let mut matches = Matches {
            words: words(query).collect(),
            after,
            limit,
            best: Vec::new(),
            total: 0,
        };
        for runs in runs.chunks(2) {
            matches.add(runs.to_vec());
        }
        matches
    }

    fn search(query: &str) -> Vec<(i64, i64)> {
        let runs = [
            run(4, "resnet50 baseline", ""),
            run(3, "resnet", "with mixup"),
            run(2, "other", "a ResNet of 50 layers"),
            run(1, "", "\u{f6}l \u{1f600}"),
        ];
        let (found, _) = matches(query, None, 10, &runs).page();
        found.into_iter().map(|found| (found.number, found.score)).collect()
    }

    #[test]
    fn words_are_beginnings_and_whole_words_in_names_count_most() {
        assert_eq!(search("resnet"), [(3, 1_000_000), (4, 800_000), (2, 500_000)]);
        assert_eq!(search("res 50").iter().map(|found| found.0).collect::<Vec<_>>(), [2]);
        assert_eq!(search("MIXUP res"), [(3, 650_000)]);
        assert_eq!(search("vit").len(), 4);
        assert_eq!(search("\u{d6}L"), [(1, 500_000)]);
        assert_eq!(search("nothing"), []);
    }

    #[test]
    fn a_query_without_words_finds_all_the_newest_first() {
        assert_eq!(
            search(" -- ").iter().map(|found| found.0).collect::<Vec<_>>(),
            [4, 3, 2, 1]
        );
    }

    #[test]
    fn pages_go_on_behind_the_last_match() {
        let runs: Vec<Texts> = (1..=9).rev().map(|number| run(number, "run", "")).collect();
        let mut after = None;
        for (expected, is_end) in [([9, 8, 7], false), ([6, 5, 4], false), ([3, 2, 1], true)] {
            let matches = matches("run", after, 3, &runs);
            assert_eq!(matches.total, 9);
            let (page, is_last) = matches.page();
            assert_eq!(page.iter().map(|found| found.number).collect::<Vec<_>>(), expected);
            assert_eq!(is_last, is_end);
            after = page.last().map(|last| PagePosition {
                key: pages::SortKey::Number(last.score),
                number: last.number,
            });
        }
    }

    /// As if the first runs were kept, or all of them.
    #[test]
    fn no_more_than_a_page_is_kept_and_the_best_come_last() {
        let mut runs: Vec<Texts> = (1..=99).map(|number| run(number, "", "run")).collect();
        runs.push(run(100, "run", ""));
        let matches = matches("run", None, 1, &runs);
        assert_eq!((matches.best.len(), matches.total), (2, 100));
        let (page, is_last) = matches.page();
        assert_eq!((page[0].number, is_last), (100, false));
    }

    #[test]
    fn a_query_has_as_many_characters_as_its_limit() {
        let of = |length: usize| {
            Search::of(SearchRunsRequest {
                project_id: Some(ProjectId {
                    value: "vision".to_owned(),
                }),
                query: "\u{20ac}".repeat(length),
                ..SearchRunsRequest::default()
            })
        };
        assert!(of(500).is_ok());
        assert_eq!(of(501).map_err(|refusal| refusal.field), Err("query".to_owned()));
    }

    #[test]
    fn a_match_says_where_it_was_found() {
        let (found, _) = matches("mixup", None, 1, &[run(1, "x", "with mixup")]).page();
        assert_eq!(found[0].highlights, ["description: with mixup"]);
    }
}
