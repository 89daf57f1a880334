//! What `ListRuns` asks for.

use super::filter::Filter;
use super::include::Include;
use super::pages::{self, PagePosition};
use crate::domain::ProjectName;
use crate::limits::{self, Limit};
use crate::refusal::{Code, Refusal};
use crate::validate;
use crate::wire::v1::{ListRunsRequest, RunSortField, SortDirection};

/// A request, checked.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Listing {
    /// All if absent.
    pub(super) project: Option<ProjectName>,
    pub(super) filter: Filter,
    pub(super) sort: Sort,
    pub(super) limit: usize,
    pub(super) after: Option<PagePosition>,
    pub(super) include: Include,
    /// For the token of the next page.
    pub(super) fingerprint: String,
}

/// The order of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sort {
    pub(super) by: SortBy,
    pub(super) is_descending: bool,
}

/// By what runs are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SortBy {
    CreatedAt,
    Name,
    Status,
    /// Runs that have not ended are last, in either direction.
    Duration,
}

impl Listing {
    /// Of a request.
    pub(super) fn of(mut request: ListRunsRequest) -> Result<Self, Refusal> {
        let project = validate::optional_project(request.project_id.as_ref())?;
        let sort = sort(&request)?;
        let limit = page_size(request.page_size, limits::PAGE)?;
        let include = Include::of(&request.include_fields)?;
        let page_token = std::mem::take(&mut request.page_token);
        request.page_size = 0;
        request.include_fields.clear();
        let fingerprint = pages::fingerprint(&request);
        let after = pages::read(&fingerprint, &page_token)?;
        Ok(Self {
            project,
            filter: Filter::of(request.filters)?,
            sort,
            limit,
            after,
            include,
            fingerprint,
        })
    }
}

/// How many entries a page has: the default if the request says none, and no more than the limit.
pub(crate) fn page_size(size: i32, limit: Limit) -> Result<usize, Refusal> {
    match usize::try_from(size) {
        Ok(0) => Ok(limits::PAGE_DEFAULT),
        Ok(size) => Ok(size.min(limit.max)),
        Err(_) => Err(negative("page_size", size)),
    }
}

/// How many points a series has: the default if the request says none, and no more than the limit.
pub(super) fn points_max(points: i32, default: usize, limit: Limit) -> Result<usize, Refusal> {
    match usize::try_from(points) {
        Ok(0) => Ok(default),
        Ok(points) => Ok(points.min(limit.max)),
        Err(_) => Err(negative("max_points", points)),
    }
}

fn negative(field: &str, number: i32) -> Refusal {
    let message = format!("{field} is {number}; leave it out, or send a number above 0");
    Refusal::new(Code::InvalidArgument, "OUT_OF_RANGE", message).at(field)
}

fn sort(request: &ListRunsRequest) -> Result<Sort, Refusal> {
    let unknown = |field: &str, number| {
        let message = format!("{field}: {number} is unknown to this server; leave it out for the default");
        Refusal::new(Code::InvalidArgument, "INVALID_SORT", message).at(field)
    };
    let sort = request.sort.unwrap_or_default();
    let field = RunSortField::try_from(sort.field).map_err(|_| unknown("sort.field", sort.field))?;
    let (by, is_descending) = match field {
        RunSortField::Unspecified | RunSortField::CreatedAt => (SortBy::CreatedAt, true),
        RunSortField::Name => (SortBy::Name, false),
        RunSortField::Status => (SortBy::Status, false),
        RunSortField::Duration => (SortBy::Duration, true),
    };
    let direction = SortDirection::try_from(sort.direction).map_err(|_| unknown("sort.direction", sort.direction))?;
    let is_descending = match direction {
        SortDirection::Unspecified => is_descending,
        SortDirection::Asc => false,
        SortDirection::Desc => true,
    };
    Ok(Sort { by, is_descending })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::v1::{ProjectId, RunSort};

    fn request() -> ListRunsRequest {
        ListRunsRequest {
            project_id: Some(ProjectId {
                value: "vision".to_owned(),
            }),
            ..ListRunsRequest::default()
        }
    }

    fn sorted(field: RunSortField, direction: SortDirection) -> Sort {
        let sort = RunSort {
            field: field.into(),
            direction: direction.into(),
        };
        let request = ListRunsRequest {
            sort: Some(sort),
            ..request()
        };
        Listing::of(request).expect("a listing").sort
    }

    #[test]
    fn each_order_has_its_own_default_direction() {
        for (field, is_descending) in [
            (RunSortField::Unspecified, true),
            (RunSortField::CreatedAt, true),
            (RunSortField::Name, false),
            (RunSortField::Status, false),
            (RunSortField::Duration, true),
        ] {
            assert_eq!(sorted(field, SortDirection::Unspecified).is_descending, is_descending);
            assert!(sorted(field, SortDirection::Desc).is_descending);
            assert!(!sorted(field, SortDirection::Asc).is_descending);
        }
    }

    #[test]
    fn a_page_that_is_too_large_is_clamped_and_a_negative_one_refused() {
        for (size, limit) in [
            (0, 50),
            (1, 1),
            (999, 999),
            (1_000, 1_000),
            (1_001, 1_000),
            (i32::MAX, 1_000),
        ] {
            let request = ListRunsRequest {
                page_size: size,
                ..request()
            };
            assert_eq!(Listing::of(request).map(|listing| listing.limit), Ok(limit), "{size}");
        }
        let request = ListRunsRequest {
            page_size: -1,
            ..request()
        };
        assert_eq!(
            Listing::of(request).map_err(|refusal| refusal.field),
            Err("page_size".to_owned())
        );
    }

    #[test]
    fn a_token_goes_on_with_another_page_size_and_not_with_another_order() {
        let first = Listing::of(request()).expect("a listing");
        let position = PagePosition {
            key: pages::SortKey::Number(5),
            number: 1,
        };
        let page_token = pages::write(&first.fingerprint, &position);
        let next = ListRunsRequest {
            page_token: page_token.clone(),
            page_size: 7,
            ..request()
        };
        assert_eq!(
            Listing::of(next.clone()).map(|listing| listing.after),
            Ok(Some(position))
        );
        let other = ListRunsRequest {
            sort: Some(RunSort { field: 2, direction: 0 }),
            ..next
        };
        assert!(Listing::of(other).is_err());
    }
}
