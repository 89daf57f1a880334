//! Asks the store, and answers.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use sqlx::pool::PoolConnection;
use sqlx::{Row as _, Sqlite};
use tokio::sync::Semaphore;

use super::chart::{Chart, ChartRequest};
use super::compare::{Alignment, Compared, Comparison, SharedAxis, common};
use super::filter::bound;
use super::include::Include;
use super::latest::{self, Latest};
use super::listing::Listing;
use super::metrics::{Answer, MetricsQuery, Range, shared_points_max};
use super::pages::{self, PagePosition, SortKey};
use super::rows::{self, failed, fetch, sort_key};
use super::search::{Matches, Search, Texts};
use super::{project, select};
use crate::domain::{MetricName, Run as StoredRun, RunId};
use crate::lifecycle::refusals::unknown_run;
use crate::refusal::Refusal;
use crate::store::{NamedSeries, SeriesRequest, Store, StoreError};
use crate::validate;
use crate::wire::v1::{
    CompareRunsRequest, CompareRunsResponse, GetMetricsRequest, GetMetricsResponse, GetProjectStatsRequest,
    GetProjectStatsResponse, GetRunRequest, GetRunResponse, ListRunsRequest, ListRunsResponse, Run, SearchResult,
    SearchRunsRequest, SearchRunsResponse,
};

/// Points that are in memory together, for one request.
const POINTS_AT_ONCE: u64 = 2_000_000;
/// Requests that read points at the same time.
const POINT_READS_MAX: usize = 4;
/// Runs whose texts are in memory together, for one search.
const TEXTS_AT_ONCE: usize = 250;

/// Reads runs.
pub struct Reader {
    store: Store,
    point_reads: Semaphore,
}

/// A run whose points are read.
struct SelectedRun {
    run: StoredRun,
    names: Vec<MetricName>,
    /// Series that are read together.
    at_once: usize,
}

impl Reader {
    /// Of a store.
    #[must_use]
    pub fn new(store: Store) -> Self {
        Self {
            store,
            point_reads: Semaphore::new(POINT_READS_MAX),
        }
    }

    /// Runs of a project, or of all.
    ///
    /// # Errors
    /// What the request has wrong.
    pub async fn list_runs(&self, request: ListRunsRequest) -> Result<ListRunsResponse, Refusal> {
        let listing = Listing::of(request)?;
        let mut on = self.connection().await?;
        let mut rows = fetch(select::page(&listing), &mut on).await?;
        let is_last = rows.len() <= listing.limit;
        rows.truncate(listing.limit);
        let numbers: Vec<i64> = rows
            .iter()
            .map(|row| row.try_get("run_no"))
            .collect::<Result<_, _>>()
            .map_err(failed)?;
        let next_page_token = match (rows.last(), numbers.last()) {
            (Some(row), Some(&number)) if !is_last => {
                let key = sort_key(row)?;
                pages::write(&listing.fingerprint, &PagePosition { key, number })
            }
            _ => String::new(),
        };
        let counted = fetch(select::count(listing.project.as_ref(), &listing.filter), &mut on).await?;
        let total_count = counted.first().map_or(Ok(0), |row| row.try_get(0)).map_err(failed)?;
        Ok(ListRunsResponse {
            runs: rows::runs(&numbers, listing.include, &mut on).await?,
            next_page_token,
            total_count,
        })
    }

    /// One run.
    ///
    /// # Errors
    /// What the request has wrong, and no such run.
    pub async fn get_run(&self, request: GetRunRequest) -> Result<GetRunResponse, Refusal> {
        let run = validate::run_id(request.run_id.as_ref())?;
        let include = Include::of(&request.include_fields)?;
        Ok(GetRunResponse {
            run: Some(self.run(&run, include).await?),
        })
    }

    /// When each of these runs changed last, as far as runs have: when it ended, or else when it was heard of last.
    ///
    /// # Errors
    /// A store that is away.
    pub async fn changed_at(&self, runs: &[Run]) -> Result<HashMap<String, i64>, Refusal> {
        let ids = runs.iter().filter_map(|run| run.run_id.as_ref());
        let ids: Vec<&str> = ids.map(|run| run.value.as_str()).collect();
        rows::changed_at(&ids, &mut *self.connection().await?).await
    }

    /// Series of runs, thinned.
    ///
    /// # Errors
    /// What the request has wrong, and no such run.
    pub async fn get_metrics(&self, request: GetMetricsRequest) -> Result<GetMetricsResponse, Refusal> {
        let query = MetricsQuery::of(&request)?;
        let mut selected = Vec::with_capacity(query.runs.len());
        for run in &query.runs {
            selected.push(self.selected_run(run, &query.names).await?);
        }
        let count = selected.iter().map(|selected| selected.names.len()).sum();
        let points_max = shared_points_max(query.points_max, count);
        let mut answer = Answer::default();
        for selected in &selected {
            answer.begin(&selected.run.run);
            for names in selected.names.chunks(selected.at_once) {
                let found = self.series(&selected.run.run, names, &query.range).await?;
                answer = apart(move || {
                    for found in &found {
                        answer.add(&found.name, &found.series, query.method, points_max);
                    }
                    answer
                })
                .await?;
            }
        }
        Ok(answer.finish())
    }

    /// Curves of a run as buckets, and the names of all its metrics.
    ///
    /// # Errors
    /// No such run.
    pub async fn charts(&self, request: &ChartRequest) -> Result<(Vec<Chart>, Vec<MetricName>), Refusal> {
        let mut selected = self.selected_run(&request.run, &[]).await?;
        let all = selected.names.clone();
        if !request.names.is_empty() {
            selected.names.retain(|name| request.names.contains(name));
        }
        let buckets_max = shared_points_max(request.buckets_max, selected.names.len());
        let mut charts = Vec::with_capacity(selected.names.len());
        for names in selected.names.chunks(selected.at_once) {
            let found = self.series(&request.run, names, &request.range).await?;
            let drawn = apart(move || {
                let found = found.into_iter().filter(|found| !found.series.is_empty());
                let drawn = found.map(|found| Chart::of(found.name, &found.series, buckets_max));
                drawn.collect::<Vec<Chart>>()
            });
            charts.extend(drawn.await?);
        }
        Ok((charts, all))
    }

    /// The last point of each metric of a run, in the order of their names.
    ///
    /// # Errors
    /// No such run.
    pub async fn latest(&self, run: &RunId) -> Result<Vec<Latest>, Refusal> {
        let selected = self.selected_run(run, &[]).await?;
        self.last_points(&selected).await
    }

    /// Series of runs on one axis.
    ///
    /// # Errors
    /// What the request has wrong, and no such run.
    pub async fn compare_runs(&self, request: CompareRunsRequest) -> Result<CompareRunsResponse, Refusal> {
        let comparison = Comparison::of(&request)?;
        let runs = self.compared_runs(&comparison).await?;
        let mut axis = SharedAxis::new(comparison.alignment);
        for (run, selected) in &runs {
            for names in selected.names.chunks(selected.at_once) {
                let found = self.series(&run.run, names, &Range::default()).await?;
                let run = run.clone();
                axis = apart(move || {
                    for found in &found {
                        axis.add(&run, &found.series);
                    }
                    axis
                })
                .await?;
            }
        }
        // Read once more, as all of them together may be more than fits into memory.
        let mut answer = axis.into_answer(comparison.points_max);
        for (run, selected) in &runs {
            answer.begin(&run.run);
            for names in selected.names.chunks(selected.at_once) {
                let found = self.series(&run.run, names, &Range::default()).await?;
                let run = run.clone();
                answer = apart(move || {
                    for found in &found {
                        answer.add(&run, &found.name, &found.series);
                    }
                    answer
                })
                .await?;
            }
        }
        Ok(answer.finish())
    }

    /// Runs that match words.
    ///
    /// # Errors
    /// What the request has wrong.
    pub async fn search_runs(&self, request: SearchRunsRequest) -> Result<SearchRunsResponse, Refusal> {
        let search = Search::of(request)?;
        let mut matches = Matches::of(&search);
        let mut before = None;
        let mut is_end = false;
        while !is_end {
            // Others have the connection while words are compared.
            let texts = texts(&search, before, &mut self.connection().await?).await?;
            before = texts.last().map(|last| (last.created_at, last.number));
            is_end = texts.len() < TEXTS_AT_ONCE;
            matches = apart(move || {
                matches.add(texts);
                matches
            })
            .await?;
        }
        let total_count = matches.total as i64;
        let (page, is_last) = matches.page();
        let next_page_token = match page.last() {
            Some(last) if !is_last => {
                let key = SortKey::Number(last.score);
                pages::write(
                    &search.fingerprint,
                    &PagePosition {
                        key,
                        number: last.number,
                    },
                )
            }
            _ => String::new(),
        };
        let mut results = Vec::with_capacity(page.len());
        let numbers: Vec<i64> = page.iter().map(|found| found.number).collect();
        let runs = rows::runs(&numbers, Include::ALL, &mut *self.connection().await?).await?;
        for (run, found) in runs.into_iter().zip(page) {
            results.push(SearchResult {
                run: Some(run),
                score: found.score as f64 / 1e6,
                highlights: found.highlights,
            });
        }
        Ok(SearchRunsResponse {
            results,
            next_page_token,
            total_count,
        })
    }

    /// What a project holds.
    ///
    /// # Errors
    /// What the request has wrong.
    pub async fn get_project_stats(&self, request: GetProjectStatsRequest) -> Result<GetProjectStatsResponse, Refusal> {
        let project = validate::project(request.project_id.as_ref())?;
        let since = bound("since", request.since.as_ref())?;
        let mut on = self.connection().await?;
        project::stats(&project, since, self.store.now(), &mut on).await
    }

    async fn connection(&self) -> Result<PoolConnection<Sqlite>, Refusal> {
        self.store.readers().acquire().await.map_err(failed)
    }

    async fn run(&self, run: &RunId, include: Include) -> Result<Run, Refusal> {
        let mut on = self.connection().await?;
        let number = rows::number_of(run.as_str(), &mut on)
            .await?
            .ok_or_else(|| unknown_run(run))?;
        let mut runs = rows::runs(&[number], include, &mut on).await?;
        runs.pop().ok_or_else(|| unknown_run(run))
    }

    /// A run with those of these names that it has; with all of its names if none is given.
    async fn selected_run(&self, run: &RunId, names: &[MetricName]) -> Result<SelectedRun, Refusal> {
        let found = self.store.run(run).await?.ok_or_else(|| unknown_run(run))?;
        let all = self.store.metric_names(run).await?.ok_or_else(|| unknown_run(run))?;
        let each = found.points / all.len().max(1) as u64;
        let at_once = POINTS_AT_ONCE / each.max(1);
        Ok(SelectedRun {
            run: found,
            names: match names.is_empty() {
                true => all,
                false => all.into_iter().filter(|name| names.contains(name)).collect(),
            },
            at_once: usize::try_from(at_once).unwrap_or(usize::MAX).max(1),
        })
    }

    /// The runs of a comparison, each with the names that are compared.
    async fn compared_runs(&self, comparison: &Comparison) -> Result<Vec<(Compared, SelectedRun)>, Refusal> {
        let mut all = Vec::with_capacity(comparison.runs.len());
        for run in &comparison.runs {
            all.push(self.selected_run(run, &comparison.names).await?);
        }
        if comparison.names.is_empty() {
            let names: Vec<&[MetricName]> = all.iter().map(|selected| selected.names.as_slice()).collect();
            let common = common(&names);
            all.iter_mut().for_each(|selected| selected.names.clone_from(&common));
        }
        let mut runs = Vec::with_capacity(all.len());
        for selected in all {
            let last_step = match comparison.alignment {
                Alignment::Progress => self.last_points(&selected).await?.iter().map(|last| last.step).max(),
                Alignment::Step | Alignment::RelativeTime | Alignment::AbsoluteTime => None,
            };
            let run = Compared {
                run: selected.run.run.clone(),
                started_at: selected.run.created_at,
                last_step: last_step.unwrap_or(0),
            };
            runs.push((run, selected));
        }
        Ok(runs)
    }

    /// The last points of the selected metrics, in the order of their names.
    async fn last_points(&self, selected: &SelectedRun) -> Result<Vec<Latest>, Refusal> {
        let ends = rows::last_steps(selected.run.number, &mut *self.connection().await?).await?;
        let mut latest = Vec::with_capacity(selected.names.len());
        for (names, step_min) in latest::groups(selected.names.clone(), &ends) {
            let range = Range {
                step_min,
                ..Range::default()
            };
            let found = self.series(&selected.run.run, &names, &range).await?;
            latest.extend(found.into_iter().filter_map(Latest::of));
        }
        latest.sort_by(|left, right| left.name.cmp(&right.name));
        Ok(latest)
    }

    async fn series(&self, run: &RunId, names: &[MetricName], range: &Range) -> Result<Vec<NamedSeries>, Refusal> {
        let _permit = self.point_reads.acquire().await.expect("it is never closed");
        let request = SeriesRequest {
            names: names.to_vec(),
            steps: bounds(range.step_min, range.step_max),
            times: bounds(range.time_min, range.time_max),
        };
        self.store.series(run, request).await?.ok_or_else(|| unknown_run(run))
    }
}

/// Works on points where no batch waits for the thread.
async fn apart<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Refusal> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| StoreError::Closed.refusal())
}

fn bounds(min: Option<i64>, max: Option<i64>) -> RangeInclusive<i64> {
    min.unwrap_or(i64::MIN)..=max.unwrap_or(i64::MAX)
}

/// Some runs that the filter finds, with what words are searched in, the newest first: those before a time and a
/// number.
async fn texts(
    search: &Search,
    before: Option<(i64, i64)>,
    on: &mut PoolConnection<Sqlite>,
) -> Result<Vec<Texts>, Refusal> {
    let statement = select::texts(&search.project, &search.filter, before, TEXTS_AT_ONCE);
    let rows = fetch(statement, &mut *on).await?;
    let mut found = Vec::with_capacity(rows.len());
    for row in &rows {
        let texts = || -> Result<Texts, sqlx::Error> {
            Ok(Texts {
                number: row.try_get(0)?,
                run_id: row.try_get(1)?,
                name: row.try_get(2)?,
                description: row.try_get(3)?,
                created_at: row.try_get(4)?,
                tags: Vec::new(),
            })
        };
        found.push(texts().map_err(failed)?);
    }
    let numbers: Vec<i64> = found.iter().map(|texts| texts.number).collect();
    let list = serde_json::to_string(&numbers).expect("numbers are JSON");
    let mut places: std::collections::HashMap<i64, usize> = numbers.into_iter().zip(0..).collect();
    for (number, key, value) in rows::pairs("tag", "key", &list, on).await? {
        if let Some(place) = places.get_mut(&number) {
            found[*place].tags.push((key, value));
        }
    }
    Ok(found)
}
