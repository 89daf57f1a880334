//! Asks the store, and answers.

use std::sync::Arc;

use async_trait::async_trait;
use sqlx::pool::PoolConnection;
use sqlx::{Row as _, Sqlite, SqlitePool};
use tokio::sync::Semaphore;

use kindex_series::Series;

use super::chart::{Chart, ChartRequest};
use super::compare::{Compared, Comparison, common, compare};
use super::filter::bound;
use super::include::Include;
use super::listing::Listing;
use super::metrics::{Answer, MetricsQuery, Range, shared_points_max};
use super::rows::{self, failed, fetch, sort_key};
use super::search::{Search, Texts, behind, matches};
use super::token::{self, Cursor, SortKey};
use super::{project, select};
use crate::domain::{Clock, MetricName, RunId};
use crate::lifecycle::refusals::unknown_run;
use crate::refusal::Refusal;
use crate::validate;
use crate::wire::v1::{
    CompareRunsRequest, CompareRunsResponse, GetMetricsRequest, GetMetricsResponse, GetProjectStatsRequest,
    GetProjectStatsResponse, GetRunRequest, GetRunResponse, ListRunsRequest, ListRunsResponse, Run, SearchResult,
    SearchRunsRequest, SearchRunsResponse,
};

/// Series that are in memory together.
const SERIES_AT_ONCE: usize = 8;
/// Requests that read points at the same time.
const POINT_READS_MAX: usize = 4;

/// The points of runs: those in chunks, and those that are not compacted yet, as one.
#[async_trait]
pub trait Points: Send + Sync + 'static {
    /// The names of the metrics of a run, in order; none if there is no such run.
    async fn names(&self, run: &RunId) -> Result<Option<Vec<MetricName>>, Refusal>;

    /// The ordered series of these metrics within the steps of the range, in the order of the names. One that the run
    /// does not have is empty.
    async fn series(&self, run: &RunId, names: &[MetricName], range: &Range) -> Result<Vec<Series>, Refusal>;
}

/// Reads runs.
pub struct Reader {
    pool: SqlitePool,
    points: Arc<dyn Points>,
    clock: Clock,
    point_reads: Semaphore,
}

impl Reader {
    /// Of connections that only read, and of the points.
    #[must_use]
    pub fn new(pool: SqlitePool, points: Arc<dyn Points>, clock: Clock) -> Self {
        Self {
            pool,
            points,
            clock,
            point_reads: Semaphore::new(POINT_READS_MAX),
        }
    }

    /// Runs of a project.
    ///
    /// # Errors
    /// What the request has wrong.
    pub async fn list_runs(&self, request: ListRunsRequest) -> Result<ListRunsResponse, Refusal> {
        let listing = Listing::of(request)?;
        let mut on = self.connection().await?;
        let mut rows = fetch(select::page(&listing), &mut on).await?;
        let is_last = rows.len() <= listing.limit;
        rows.truncate(listing.limit);
        let numbers: Vec<i64> = rows.iter().map(|row| row.try_get("run_no")).collect::<Result<_, _>>().map_err(failed)?;
        let next_page_token = match (rows.last(), numbers.last()) {
            (Some(row), Some(&number)) if !is_last => {
                let key = sort_key(row)?;
                token::write(&listing.fingerprint, &Cursor { key, number })
            }
            _ => String::new(),
        };
        let counted = fetch(select::count(&listing.project, &listing.filter), &mut on).await?;
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

    /// Series of runs, thinned.
    ///
    /// # Errors
    /// What the request has wrong, and no such run.
    pub async fn get_metrics(&self, request: GetMetricsRequest) -> Result<GetMetricsResponse, Refusal> {
        let query = MetricsQuery::of(&request)?;
        let mut wanted = Vec::with_capacity(query.runs.len());
        for run in &query.runs {
            let names = self.names(run, &query.names).await?;
            wanted.push((run, names));
        }
        let count = wanted.iter().map(|(_, names)| names.len()).sum();
        let points_max = shared_points_max(query.points_max, count);
        let mut answer = Answer::default();
        for (run, names) in &wanted {
            answer.begin(run);
            for names in names.chunks(SERIES_AT_ONCE) {
                for (name, series) in names.iter().zip(self.series(run, names, &query.range).await?) {
                    answer.add(name, &series, query.method, points_max);
                }
            }
        }
        Ok(answer.finish())
    }

    /// Curves of a run as buckets, and the names of all its metrics.
    ///
    /// # Errors
    /// No such run.
    pub async fn charts(&self, request: &ChartRequest) -> Result<(Vec<Chart>, Vec<MetricName>), Refusal> {
        let all = self.names(&request.run, &[]).await?;
        let names = match request.names.is_empty() {
            true => all.clone(),
            false => request.names.clone(),
        };
        let buckets_max = shared_points_max(request.buckets_max, names.len());
        let mut charts = Vec::with_capacity(names.len());
        for names in names.chunks(SERIES_AT_ONCE) {
            for (name, series) in names.iter().zip(self.series(&request.run, names, &request.range).await?) {
                if !series.is_empty() {
                    charts.push(Chart::of(name.clone(), &series, buckets_max));
                }
            }
        }
        Ok((charts, all))
    }

    /// Series of runs on one axis.
    ///
    /// # Errors
    /// What the request has wrong, and no such run.
    pub async fn compare_runs(&self, request: CompareRunsRequest) -> Result<CompareRunsResponse, Refusal> {
        let comparison = Comparison::of(&request)?;
        let mut names = comparison.names.clone();
        if names.is_empty() {
            let mut all = Vec::with_capacity(comparison.runs.len());
            for run in &comparison.runs {
                all.push(self.names(run, &[]).await?);
            }
            names = common(&all);
        }
        let mut runs = Vec::with_capacity(comparison.runs.len());
        for run in &comparison.runs {
            let own = self.names(run, &names).await?;
            let series = self.series(run, &own, &Range::default()).await?;
            let series = own.into_iter().zip(series).filter(|(_, series)| !series.is_empty());
            runs.push(Compared {
                run: run.clone(),
                started_at: self.started_at(run).await?,
                series: series.collect(),
            });
        }
        Ok(compare(&runs, comparison.alignment, comparison.points_max))
    }

    /// Runs that match words.
    ///
    /// # Errors
    /// What the request has wrong.
    pub async fn search_runs(&self, request: SearchRunsRequest) -> Result<SearchRunsResponse, Refusal> {
        let search = Search::of(request)?;
        let mut on = self.connection().await?;
        let found = matches(&search.words, texts(&search, &mut on).await?);
        let rest = behind(&found, search.after.as_ref());
        let page = &rest[..rest.len().min(search.limit)];
        let next_page_token = match page.last() {
            Some(last) if page.len() < rest.len() => {
                let key = SortKey::Number(last.score);
                token::write(&search.fingerprint, &Cursor { key, number: last.number })
            }
            _ => String::new(),
        };
        let mut results = Vec::with_capacity(page.len());
        let numbers: Vec<i64> = page.iter().map(|found| found.number).collect();
        let runs = rows::runs(&numbers, Include::ALL, &mut on).await?;
        for (run, found) in runs.into_iter().zip(page) {
            results.push(SearchResult {
                run: Some(run),
                score: found.score as f64 / 1e6,
                highlights: found.highlights.clone(),
            });
        }
        Ok(SearchRunsResponse {
            results,
            next_page_token,
            total_count: found.len() as i64,
        })
    }

    /// What a project holds.
    ///
    /// # Errors
    /// What the request has wrong.
    pub async fn get_project_stats(&self, request: GetProjectStatsRequest) -> Result<GetProjectStatsResponse, Refusal> {
        let project = validate::project(request.project_id.as_ref())?;
        let since = bound("since", request.since.as_ref())?;
        let now = crate::domain::nanos((self.clock)()).unwrap_or_default();
        project::stats(&project, since, now, &mut *self.connection().await?).await
    }

    async fn connection(&self) -> Result<PoolConnection<Sqlite>, Refusal> {
        self.pool.acquire().await.map_err(failed)
    }

    async fn run(&self, run: &RunId, include: Include) -> Result<Run, Refusal> {
        let mut on = self.connection().await?;
        let number = rows::number_of(run.as_str(), &mut on).await?.ok_or_else(|| unknown_run(run))?;
        let mut runs = rows::runs(&[number], include, &mut on).await?;
        runs.pop().ok_or_else(|| unknown_run(run))
    }

    async fn started_at(&self, run: &RunId) -> Result<i64, Refusal> {
        let query = sqlx::query_scalar("SELECT created_at FROM run WHERE run_id = ?").bind(run.as_str());
        let found = query.fetch_optional(&mut *self.connection().await?).await.map_err(failed)?;
        found.ok_or_else(|| unknown_run(run))
    }

    /// Of these names those that the run has; all of them if none is named.
    async fn names(&self, run: &RunId, wanted: &[MetricName]) -> Result<Vec<MetricName>, Refusal> {
        let mut names = self.points.names(run).await?.ok_or_else(|| unknown_run(run))?;
        if !wanted.is_empty() {
            names.retain(|name| wanted.contains(name));
        }
        Ok(names)
    }

    async fn series(&self, run: &RunId, names: &[MetricName], range: &Range) -> Result<Vec<Series>, Refusal> {
        let _permit = self.point_reads.acquire().await.expect("it is never closed");
        let series = self.points.series(run, names, range).await?;
        Ok(series.into_iter().map(|series| range.of(series)).collect())
    }
}

/// All runs that the filter finds, with what words are searched in, the newest first.
async fn texts(search: &Search, on: &mut PoolConnection<Sqlite>) -> Result<Vec<Texts>, Refusal> {
    let rows = fetch(select::texts(&search.project, &search.filter), &mut *on).await?;
    let mut found = Vec::with_capacity(rows.len());
    for row in &rows {
        let texts = || -> Result<Texts, sqlx::Error> {
            Ok(Texts {
                number: row.try_get(0)?,
                run_id: row.try_get(1)?,
                name: row.try_get(2)?,
                description: row.try_get(3)?,
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
