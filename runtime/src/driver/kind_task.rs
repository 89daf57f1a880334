//! The task of one kind: gives inputs to its controller and carries out the outputs. Keeps the open watch; contains no
//! rule of the ingester.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use jiff::Timestamp;
use kindex_kube_client::{ClusterApi, ClusterError, EventApi, Notice, WatchStream};
use kindex_model::kind::Kind;
use kindex_model::object::ResourceVersion;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};

use super::execute::Executor;
use crate::controller::Controller;
use crate::message::{Input, Now, Output};
use crate::status::KindStatus;

/// Least time between two copies of the status.
const STATUS_PERIOD: Duration = Duration::from_millis(50);

/// The result of a spawned task.
enum Done {
    Answer(Input),
    /// An opened watch, of the attempt with this number.
    Watch(u64, Result<WatchStream, ClusterError>),
    Nothing,
}

pub(super) struct KindTask {
    controller: Controller,
    executor: Executor,
    /// Where objects are watched and events created.
    cluster: Arc<dyn ClusterApi>,
    status: Arc<watch::Sender<KindStatus>>,
    started: Instant,
    work: JoinSet<Done>,
    watch: Option<WatchStream>,
    /// How many watches were requested; only the newest counts.
    watches: u64,
    published: Instant,
    unpublished: bool,
}

impl KindTask {
    pub(super) fn new(
        controller: Controller,
        executor: Executor,
        cluster: Arc<dyn ClusterApi>,
        status: Arc<watch::Sender<KindStatus>>,
    ) -> Self {
        let started = Instant::now();
        Self {
            controller,
            executor,
            cluster,
            status,
            started,
            work: JoinSet::new(),
            watch: None,
            watches: 0,
            published: started,
            unpublished: true,
        }
    }

    /// Runs until it is stopped and drained.
    ///
    /// # Errors
    /// If a spawned task panicked: the controller no longer knows what is in flight.
    pub(super) async fn run(mut self, mut stop: watch::Receiver<bool>) -> Result<(), JoinError> {
        self.step(Input::Start);
        let mut stopping = false;
        while !(stopping && self.controller.is_drained()) {
            let wake = self.wake_at();
            let listening = self.watch.is_some() && self.controller.wants_events();
            let input = tokio::select! {
                biased;
                () = stopped(&mut stop), if !stopping => {
                    stopping = true;
                    Some(Input::Stop)
                }
                Some(done) = self.work.join_next() => self.on_done(done?),
                event = next_event(&mut self.watch), if listening => Some(event),
                () = tokio::time::sleep_until(wake.into()) => Some(Input::Timer),
            };
            if let Some(input) = input {
                self.step(input);
            }
            self.publish();
        }
        self.unpublished = true;
        self.publish_now();
        Ok(())
    }

    fn step(&mut self, input: Input) {
        let now = Now {
            wall: Timestamp::now(),
            elapsed: self.started.elapsed(),
        };
        if matches!(input, Input::WatchEnded | Input::Watch(Err(_))) {
            self.watch = None;
        }
        for output in self.controller.step(now, input) {
            match output {
                Output::Watch(from) => self.open_watch(from),
                Output::StopWatch => {
                    self.watches += 1;
                    self.watch = None;
                }
                Output::Notify(notice) => self.notify(notice),
                output => {
                    let answer = self.executor.clone().execute(output, now.wall);
                    self.work.spawn(async { Done::Answer(answer.await) });
                }
            }
        }
        self.unpublished = true;
    }

    fn open_watch(&mut self, from: ResourceVersion) {
        self.watches += 1;
        self.watch = None;
        let number = self.watches;
        let (kind, cluster) = (self.executor.kind, self.cluster.clone());
        self.work.spawn(async move {
            let opened = cluster.watch(kind, from).await;
            Done::Watch(number, opened)
        });
    }

    fn notify(&mut self, notice: Notice) {
        let (kind, cluster) = (self.executor.kind, self.cluster.clone());
        self.work.spawn(async move {
            create_event(&*cluster, kind, &notice).await;
            Done::Nothing
        });
    }

    fn on_done(&mut self, done: Done) -> Option<Input> {
        match done {
            Done::Answer(input) => Some(input),
            Done::Watch(number, _) if number != self.watches => None,
            Done::Watch(_, Ok(stream)) => {
                self.watch = Some(stream);
                None
            }
            Done::Watch(_, Err(error)) => Some(Input::Watch(Err(error))),
            Done::Nothing => None,
        }
    }

    fn wake_at(&self) -> Instant {
        const LONG: Duration = Duration::from_secs(3600);
        let deadline = self.controller.deadline().map(|at| self.started + at);
        let status = self.unpublished.then(|| self.published + STATUS_PERIOD);
        let wake = deadline.into_iter().chain(status).min();
        wake.unwrap_or_else(|| Instant::now() + LONG)
    }

    fn publish(&mut self) {
        if self.unpublished && self.published.elapsed() >= STATUS_PERIOD {
            self.publish_now();
        }
    }

    fn publish_now(&mut self) {
        self.status.send_replace(self.controller.status());
        self.published = Instant::now();
        self.unpublished = false;
    }
}

/// Ends when the sender requests it or is dropped.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    // An error means that the sender is gone, so that nothing else can stop the task.
    let _gone = stop.wait_for(|stop| *stop).await;
}

async fn create_event(cluster: &dyn EventApi, kind: &Kind, notice: &Notice) {
    if let Err(error) = cluster.create_event(kind, notice).await {
        let object = &notice.about.name;
        tracing::warn!(kind = kind.name, %object, "The Kubernetes event could not be created: {error}");
    }
}

async fn next_event(watch: &mut Option<WatchStream>) -> Input {
    let stream = watch.as_mut().expect("polled only while a watch is open");
    match stream.next().await {
        Some(event) => Input::Watch(event),
        None => Input::WatchEnded,
    }
}
