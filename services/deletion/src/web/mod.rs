//! Notices on their way to a web server, beside the events of the cluster. Nobody waits for them: they are posted one
//! after the other by a task of their own, and dropped where too many wait.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;
use tokio::sync::Mutex;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::metrics::{Metrics, Posted};
use crate::notice::Notice;
use crate::object::Object;
use server::{Answer, Server};

pub mod server;

/// Notices that wait for their turn.
const WAITING_MAX: usize = 1_000;
/// As often a notice is posted before it is given up.
const TRIES_MAX: u32 = 6;
/// After the first try that failed; each further one doubles it.
const PAUSE: Duration = Duration::from_millis(500);
/// For so long notices are posted after the service has stopped, once each.
const END_TIME: Duration = Duration::from_secs(3);

/// What is posted of a notice.
#[derive(Debug)]
pub(crate) struct Post {
    /// The object, for the log.
    about: String,
    body: Vec<u8>,
}

impl Post {
    /// What a notice says about an object whose kind has this API version.
    pub(crate) fn new(api_version: &str, object: &Object, notice: &Notice, now: Timestamp) -> Self {
        let key = &object.key;
        let body = json!({
            "apiVersion": api_version,
            "kind": key.kind.kind,
            "namespace": &*key.namespace,
            "name": &*key.name,
            "uid": object.uid,
            "reason": notice.reason,
            "message": notice.message,
            "roots": notice.roots,
            "waits": notice.waits(),
            "time": now.to_string(),
        });
        Self {
            about: key.to_string(),
            body: body.to_string().into_bytes(),
        }
    }
}

/// The notices for one server. Clones are the same.
#[derive(Clone)]
pub struct WebNotices {
    server: Arc<Server>,
    metrics: Metrics,
    queue: Sender<Post>,
    /// Whoever posts them has the lock.
    due: Arc<Mutex<Receiver<Post>>>,
}

impl WebNotices {
    /// None yet.
    pub fn new(server: Server, metrics: &Metrics) -> Self {
        let (queue, due) = channel(WAITING_MAX);
        Self {
            server: Arc::new(server),
            metrics: metrics.clone(),
            queue,
            due: Arc::new(Mutex::new(due)),
        }
    }

    /// One more, unless too many wait.
    pub(crate) fn add(&self, post: Post) {
        match self.queue.try_send(post) {
            Ok(()) => {}
            Err(TrySendError::Full(post) | TrySendError::Closed(post)) => {
                self.metrics.posted(Posted::Dropped, 1);
                tracing::warn!(object = post.about, "A web notice is dropped: too many wait");
            }
        }
    }

    /// Posts one after the other until stopped, and for a moment after that.
    async fn run(&self, stop: &CancellationToken) {
        let mut due = self.due.lock().await;
        let mut is_under_way = false;
        let ended = async {
            stop.cancelled().await;
            sleep(END_TIME).await;
        };
        tokio::select! {
            () = self.post_all(&mut due, &mut is_under_way, stop) => {}
            () = ended => {}
        }
        let mut left = u64::from(is_under_way);
        while due.try_recv().is_ok() {
            left += 1;
        }
        if left > 0 {
            self.metrics.posted(Posted::Dropped, left);
            tracing::warn!(left, "Web notices are dropped: the service stops");
        }
    }

    /// Once stopped, those that wait, and no more.
    async fn post_all(&self, due: &mut Receiver<Post>, is_under_way: &mut bool, stop: &CancellationToken) {
        loop {
            let next = tokio::select! {
                biased;
                next = due.recv() => next,
                () = stop.cancelled() => None,
            };
            let Some(post) = next else {
                return;
            };
            *is_under_way = true;
            self.post(&post, stop).await;
            *is_under_way = false;
        }
    }

    /// Posts one, several times if need be. Once stopped, it has one more try.
    async fn post(&self, post: &Post, stop: &CancellationToken) {
        let (mut tries, mut pause) = (1, PAUSE);
        let why = loop {
            match self.server.post(&post.body).await {
                Answer::Taken => return self.metrics.posted(Posted::Sent, 1),
                Answer::Refused(why) => break why,
                Answer::Unanswered(why) if tries == TRIES_MAX || stop.is_cancelled() => break why,
                Answer::Unanswered(why) => {
                    tracing::debug!(object = post.about, why, "A web notice is posted again");
                }
            }
            tokio::select! {
                () = sleep(pause) => {}
                () = stop.cancelled() => {}
            }
            tries += 1;
            pause *= 2;
        };
        self.metrics.posted(Posted::Failed, 1);
        tracing::warn!(object = post.about, tries, why, "A web notice is given up");
    }
}

/// Who posts notices while the service works.
pub(crate) struct Posting {
    stop: CancellationToken,
    task: JoinSet<()>,
}

impl Posting {
    /// Begins to post, if there is a server.
    pub(crate) fn begin(notices: Option<&WebNotices>) -> Self {
        let (stop, mut task) = (CancellationToken::new(), JoinSet::new());
        if let Some(notices) = notices.cloned() {
            let stop = stop.clone();
            task.spawn(async move { notices.run(&stop).await });
        }
        Self { stop, task }
    }

    /// Nothing is posted after that.
    pub(crate) async fn end(mut self) {
        self.stop.cancel();
        while self.task.join_next().await.is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use prometheus::{Registry, TextEncoder};
    use serde_json::Value;

    use super::server::Endpoint;
    use super::*;
    use crate::fixture::{deleting, key_in};
    use crate::notice::About;
    use crate::object::Key;

    fn object(namespace: &str) -> Object {
        let key = Key {
            namespace: namespace.into(),
            ..key_in("region.example.com", "Network", "blue")
        };
        deleting(key, "5b2c")
    }

    fn post(namespace: &str) -> Post {
        let notice = Notice {
            reason: "DeletionBlocked",
            message: "still in use by \"c\"".to_owned(),
            roots: "d (2h)".to_owned(),
            about: About::Deletion,
        };
        let now = "2026-11-24T12:00:00Z".parse().expect("a time");
        Post::new("region.example.com/v1", &object(namespace), &notice, now)
    }

    #[test]
    fn a_post_names_the_object_and_says_what_the_event_says() {
        let body: Value = serde_json::from_slice(&post("prod").body).expect("JSON");
        let expected = json!({
            "apiVersion": "region.example.com/v1",
            "kind": "Network",
            "namespace": "prod",
            "name": "blue",
            "uid": "5b2c",
            "reason": "DeletionBlocked",
            "message": "still in use by \"c\"",
            "roots": "d (2h)",
            "waits": true,
            "time": "2026-11-24T12:00:00Z",
        });
        assert_eq!(body, expected);
        let body: Value = serde_json::from_slice(&post("").body).expect("JSON");
        assert_eq!(body["namespace"], "", "an object of the whole cluster");
    }

    async fn notices(metrics: &Metrics) -> WebNotices {
        let place = Endpoint {
            url: "http://127.0.0.1:1".to_owned(),
            token_file: None,
            ca_file: None,
        };
        WebNotices::new(Server::open(&place).await.expect("a server"), metrics)
    }

    fn shows(registry: &Registry, result: &str, count: usize) -> bool {
        let text = TextEncoder::new().encode_to_string(&registry.gather()).expect("a text");
        text.contains(&format!(
            "kindex_deletion_web_notices_total{{result=\"{result}\"}} {count}\n"
        ))
    }

    #[tokio::test]
    async fn where_too_many_wait_the_last_ones_are_dropped() {
        let registry = Registry::new();
        let notices = notices(&Metrics::new(&registry)).await;
        for result in ["sent", "failed", "dropped"] {
            assert!(shows(&registry, result, 0), "{result} is shown from the beginning");
        }
        for _ in 0..WAITING_MAX {
            notices.add(post("prod"));
        }
        assert!(shows(&registry, "dropped", 0));
        notices.add(post("prod"));
        assert!(shows(&registry, "dropped", 1));
    }

    #[tokio::test]
    async fn what_waits_when_the_service_stops_is_posted_once_or_counted_as_lost() {
        let registry = Registry::new();
        let notices = notices(&Metrics::new(&registry)).await;
        for _ in 0..3 {
            notices.add(post("prod"));
        }
        Posting::begin(Some(&notices)).end().await;
        assert!(shows(&registry, "failed", 3), "nobody listens there");
        assert!(shows(&registry, "dropped", 0));
    }
}
