//! Which runs a request is about. All conditions hold for a run that is found.

use prost_types::Timestamp;

use crate::domain::{Status, from_wire};
use crate::limits;
use crate::refusal::{Code, Refusal};
use crate::validate::within;
use crate::wire::v1::{ComparisonOp, ParameterFilter, RunFilters};

/// Conditions on runs, checked.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Filter {
    /// Any of them; any at all if empty.
    pub(super) statuses: Vec<Status>,
    /// All of them, keys and values.
    pub(super) tags: Vec<(String, String)>,
    /// With `*` for any text.
    pub(super) name: Option<String>,
    pub(super) created_after: Option<i64>,
    pub(super) created_before: Option<i64>,
    pub(super) user: Option<String>,
    pub(super) parent: Option<String>,
    pub(super) params: Vec<ParamFilter>,
}

/// A comparison with a parameter.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ParamFilter {
    pub(super) name: String,
    pub(super) comparison: Comparison,
    pub(super) value: String,
    /// The value, if it is a number.
    pub(super) number: Option<f64>,
}

/// How a parameter is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Eq,
    Ne,
    Gt,
    Ge,
    Lt,
    Le,
    Contains,
}

impl Filter {
    /// Of a request.
    pub(super) fn of(filters: Option<RunFilters>) -> Result<Self, Refusal> {
        let Some(filters) = filters else {
            return Ok(Self::default());
        };
        within("filters.tags", filters.tags.len(), limits::TAG_FILTERS)?;
        within(
            "filters.param_filters",
            filters.param_filters.len(),
            limits::PARAM_FILTERS,
        )?;
        let name = filters.name_pattern.filter(|pattern| !pattern.is_empty());
        if let Some(pattern) = &name {
            check_pattern("filters.name_pattern", pattern)?;
        }
        let statuses = filters.statuses.iter().enumerate();
        let params = filters.param_filters.into_iter().enumerate();
        Ok(Self {
            statuses: statuses
                .map(|(place, &number)| status(place, number))
                .collect::<Result<_, _>>()?,
            tags: filters.tags.into_iter().map(|tag| (tag.key, tag.value)).collect(),
            name,
            created_after: bound("filters.created_after", filters.created_after.as_ref())?,
            created_before: bound("filters.created_before", filters.created_before.as_ref())?,
            user: filters.user_id.filter(|user| !user.is_empty()),
            parent: filters.parent_run_id.filter(|parent| !parent.is_empty()),
            params: params
                .map(|(place, filter)| param(place, filter))
                .collect::<Result<_, _>>()?,
        })
    }
}

/// A pattern that is no longer than it may be.
pub(crate) fn check_pattern(field: &str, pattern: &str) -> Result<(), Refusal> {
    let limit = limits::NAME_PATTERN;
    if limit.holds(pattern) {
        return Ok(());
    }
    let message = format!(
        "{field}: the {} has more than {} characters; use `*` for a part of it",
        limit.of, limit.max
    );
    Err(Refusal::new(Code::InvalidArgument, "TOO_LONG", message).at(field))
}

/// A pattern with `*` for any text, in the syntax of SQLite's `GLOB`, in which nothing else of it is special.
pub(crate) fn glob(pattern: &str) -> String {
    let mut glob = String::with_capacity(pattern.len());
    for character in pattern.chars() {
        match character {
            '?' | '[' => glob.extend(['[', character, ']']),
            other => glob.push(other),
        }
    }
    glob
}

/// A bound in time.
pub(super) fn bound(field: &str, time: Option<&Timestamp>) -> Result<Option<i64>, Refusal> {
    let of = |time: &Timestamp| {
        from_wire(time).ok_or_else(|| {
            let message = format!("{field} is not a time between the years 1677 and 2262");
            Refusal::new(Code::InvalidArgument, "INVALID_TIME", message).at(field)
        })
    };
    time.map(of).transpose()
}

fn status(place: usize, number: i32) -> Result<Status, Refusal> {
    Status::of_number(i64::from(number)).ok_or_else(|| {
        let message = format!("filters.statuses: no run has the status {number}");
        Refusal::new(Code::InvalidArgument, "INVALID_STATUS", message).at(format!("filters.statuses[{place}]"))
    })
}

fn param(place: usize, filter: ParameterFilter) -> Result<ParamFilter, Refusal> {
    let comparison = match filter.op() {
        ComparisonOp::Eq => Comparison::Eq,
        ComparisonOp::Ne => Comparison::Ne,
        ComparisonOp::Gt => Comparison::Gt,
        ComparisonOp::Ge => Comparison::Ge,
        ComparisonOp::Lt => Comparison::Lt,
        ComparisonOp::Le => Comparison::Le,
        ComparisonOp::Contains => Comparison::Contains,
        ComparisonOp::Unspecified => {
            let message = format!("the filter of parameter {:?} says no comparison; set op", filter.name);
            let refusal = Refusal::new(Code::InvalidArgument, "REQUIRED", message);
            return Err(refusal.at(format!("filters.param_filters[{place}].op")));
        }
    };
    let number = filter.value.parse().ok().filter(|number: &f64| number.is_finite());
    Ok(ParamFilter {
        name: filter.name,
        comparison,
        value: filter.value,
        number,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::v1::Tag;

    #[test]
    fn only_stars_are_special_in_a_pattern() {
        assert_eq!(glob("a*[?]*"), "a*[[][?]]*");
    }

    #[test]
    fn a_filter_that_says_nothing_or_too_much_is_refused() {
        let field = |filters: RunFilters| Filter::of(Some(filters)).expect_err("refused").field;
        let unspecified = ParameterFilter::default();
        assert_eq!(
            field(RunFilters {
                param_filters: vec![unspecified],
                ..RunFilters::default()
            }),
            "filters.param_filters[0].op"
        );
        assert_eq!(
            field(RunFilters {
                statuses: vec![1, 0],
                ..RunFilters::default()
            }),
            "filters.statuses[1]"
        );
        let outside = Timestamp {
            seconds: i64::MAX,
            nanos: 0,
        };
        assert_eq!(
            field(RunFilters {
                created_after: Some(outside),
                ..RunFilters::default()
            }),
            "filters.created_after"
        );
        let tags = |count| RunFilters {
            tags: vec![Tag::default(); count],
            ..RunFilters::default()
        };
        assert!(Filter::of(Some(tags(20))).is_ok());
        assert_eq!(field(tags(21)), "filters.tags");
    }

    #[test]
    fn a_value_is_a_number_where_it_reads_as_a_finite_one() {
        for (value, number) in [
            ("1e-3", Some(0.001)),
            ("7", Some(7.0)),
            ("adam", None),
            ("nan", None),
            ("", None),
        ] {
            let filter = ParameterFilter {
                name: "lr".to_owned(),
                op: ComparisonOp::Lt.into(),
                value: value.to_owned(),
            };
            assert_eq!(param(0, filter).map(|filter| filter.number), Ok(number), "{value:?}");
        }
    }
}
