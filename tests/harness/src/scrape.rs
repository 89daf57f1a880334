//! What a process says over HTTP about itself: one request, and a Prometheus text taken
//! apart. Knows no metric.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use crate::wait::WAIT_MAX;

/// Asks for a path; gives back the status code and the body.
///
/// # Errors
/// Where nobody answers in time, or not in HTTP.
pub fn get(address: SocketAddr, path: &str) -> io::Result<(u16, String)> {
    let mut stream = TcpStream::connect_timeout(&address, WAIT_MAX)?;
    stream.set_read_timeout(Some(WAIT_MAX))?;
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let odd = || io::Error::other(format!("no HTTP answer: {answer}"));
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(odd)?;
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    Ok((status.ok_or_else(odd)?, body.to_owned()))
}

/// One exposition in Prometheus' text format.
#[derive(Debug, Default)]
pub struct Scrape {
    /// By name, without the suffixes of a histogram's samples.
    pub families: BTreeMap<String, Family>,
    /// In their order.
    pub samples: Vec<Sample>,
}

/// What is said of a metric.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Family {
    /// `counter`, `gauge` or `histogram`.
    pub metric_type: String,
    /// One sentence.
    pub help: String,
    /// The labels that its samples have, a histogram's bound left out.
    pub labels: BTreeSet<String>,
}

/// One number.
#[derive(Debug)]
pub struct Sample {
    /// As it stands there, with suffixes.
    pub name: String,
    /// Label values by label.
    pub labels: BTreeMap<String, String>,
    /// The number.
    pub value: f64,
}

impl Scrape {
    /// Reads a text that keeps a family's lines together, as Prometheus asks for.
    ///
    /// # Panics
    /// Where a line is none of the format.
    pub fn parse(text: &str) -> Self {
        let mut scrape = Self::default();
        let mut current = String::new();
        for line in text.lines() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                let (name, help) = help.split_once(' ').expect("a name and a help text");
                name.clone_into(&mut current);
                help.clone_into(&mut scrape.families.entry(current.clone()).or_default().help);
            } else if let Some(kind) = line.strip_prefix("# TYPE ") {
                let (name, kind) = kind.split_once(' ').expect("a name and a type");
                name.clone_into(&mut current);
                kind.clone_into(&mut scrape.families.entry(current.clone()).or_default().metric_type);
            } else if !line.is_empty() {
                let sample = parse_sample(line);
                assert!(sample.name.starts_with(&current), "{line} stands under {current}");
                let labels = sample.labels.keys().filter(|label| *label != "le").cloned();
                let family = scrape.families.entry(current.clone()).or_default();
                family.labels.extend(labels);
                scrape.samples.push(sample);
            }
        }
        scrape
    }

    /// The sum of a metric's samples that have these labels; 0 where there is none.
    pub fn sum_of(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let has = |sample: &&Sample| {
            labels
                .iter()
                .all(|(label, value)| sample.labels.get(*label).is_some_and(|is| is == value))
        };
        let named = self.samples.iter().filter(|sample| sample.name == name);
        named.filter(has).map(|sample| sample.value).sum()
    }

    /// The sum of all samples of this name.
    pub fn sum(&self, name: &str) -> f64 {
        let samples = self.samples.iter().filter(|sample| sample.name == name);
        samples.map(|sample| sample.value).sum()
    }
}

fn parse_sample(line: &str) -> Sample {
    let (head, value) = line.rsplit_once(' ').expect("a value");
    let (name, labels) = head.split_once('{').unwrap_or((head, "}"));
    let labels = labels.strip_suffix('}').expect("the end of the labels");
    Sample {
        name: name.to_owned(),
        labels: parse_labels(labels),
        value: value.parse().expect("a number"),
    }
}

/// `a="x",b="y"`; a comma or an equals sign within a value is part of it.
fn parse_labels(mut rest: &str) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::new();
    while let Some((label, value)) = rest.split_once("=\"") {
        let (value, after) = value.split_once('"').expect("the end of a value");
        labels.insert(label.to_owned(), value.to_owned());
        rest = after.strip_prefix(',').unwrap_or(after);
    }
    labels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_taken_apart() {
        let scrape = Scrape::parse(concat!(
            "# HELP a_total Things, counted.\n# TYPE a_total counter\n",
            "a_total{kind=\"X, Y\",cause=\"z\"} 3\na_total{kind=\"W\",cause=\"z\"} 4\n",
            "# HELP b How long.\n# TYPE b histogram\nb_bucket{le=\"+Inf\"} 2\nb_sum 1.5\nb_count 2\n",
        ));
        assert_eq!(scrape.sum("a_total"), 7.0);
        assert_eq!(scrape.samples[0].labels["kind"], "X, Y");
        let family = &scrape.families["a_total"];
        assert_eq!((&*family.metric_type, &*family.help), ("counter", "Things, counted."));
        assert!(family.labels.iter().eq(["cause", "kind"]));
        assert!(scrape.families["b"].labels.is_empty());
    }
}
