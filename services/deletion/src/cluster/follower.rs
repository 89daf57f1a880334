//! What only whoever follows the cluster knows: what works beside the loop over the cluster asks, and the loop answers.

use tokio::sync::{mpsc, oneshot};

use crate::decide::Seen;
use crate::object::Object;

/// Messages that wait to be read.
const MESSAGES_MAX: usize = 1;

/// What the loop is asked, or hears.
#[derive(Debug)]
pub(crate) enum Message {
    /// Whether a live object is held by one of the cluster from which it was moved; nothing where that is not known.
    Former(Box<Object>, oneshot::Sender<Option<bool>>),
    /// Who waits in the cluster for an object, by its reference.
    Waiting(Seen, oneshot::Sender<Vec<Seen>>),
    /// A cycle was found: the object with which it begins is reported with it.
    Cycle(Vec<Seen>),
}

/// The loop that follows the cluster, for what works beside it.
#[derive(Clone, Debug)]
pub(crate) struct Follower {
    messages: mpsc::Sender<Message>,
}

impl Follower {
    /// With the messages as they come.
    pub(crate) fn channel() -> (Self, mpsc::Receiver<Message>) {
        let (messages, received) = mpsc::channel(MESSAGES_MAX);
        (Self { messages }, received)
    }

    /// Whether an object of the cluster that is not being deleted holds a live one, whose fields may name it, but do
    /// not. Nothing where that is not known, or nobody answers any more.
    pub(super) async fn hold(&self, holder: &Object) -> Option<bool> {
        self.ask(|answer| Message::Former(Box::new(holder.clone()), answer))
            .await
            .flatten()
    }

    /// Who waits in the cluster for an object, by its reference. Nothing where nobody answers any more.
    pub(super) async fn waiting_for(&self, holder: &Seen) -> Option<Vec<Seen>> {
        self.ask(|answer| Message::Waiting(holder.clone(), answer)).await
    }

    /// The object with which a cycle begins is reported with it: others on it may have been without it.
    pub(crate) async fn cycle(&self, path: Vec<Seen>) {
        // The process that comes next finds it again.
        let _unheard = self.messages.send(Message::Cycle(path)).await;
    }

    async fn ask<A>(&self, question: impl FnOnce(oneshot::Sender<A>) -> Message) -> Option<A> {
        let (answer, answered) = oneshot::channel();
        self.messages.send(question(answer)).await.ok()?;
        // A question that arrives just as the loop ends may lie there unread as long as there is a follower.
        tokio::select! {
            biased;
            answer = answered => answer.ok(),
            () = self.messages.closed() => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{key, live};

    /// As if silence were an answer: what is moved while the service stops would be deleted.
    #[tokio::test]
    async fn nothing_is_known_of_an_object_about_which_nobody_answers() {
        let object = live(key("Cluster", "c"), "c");
        let (follower, mut received) = Follower::channel();
        let answers = async {
            let Some(Message::Former(holder, answer)) = received.recv().await else {
                panic!("it is asked");
            };
            answer.send(Some(holder.uid == "c")).expect("somebody waits for it");
            drop(received.recv().await);
            drop(received);
        };
        let asks = async {
            assert_eq!(follower.hold(&object).await, Some(true));
            assert_eq!(follower.hold(&object).await, None, "the question is lost");
            assert_eq!(follower.hold(&object).await, None, "nobody listens");
        };
        tokio::join!(answers, asks);
    }

    /// As if what is recorded while the service stops waited for an answer for ever, or took silence for one.
    #[tokio::test]
    async fn who_waits_for_an_object_is_not_known_where_nobody_answers() {
        let (holder, other) = (live(key("Cluster", "c"), "c"), live(key("Network", "n"), "n"));
        let [holder, other] = [&holder, &other].map(Seen::of);
        let (follower, mut received) = Follower::channel();
        let answers = async {
            let Some(Message::Waiting(asked, answer)) = received.recv().await else {
                panic!("it is asked");
            };
            assert_eq!(asked, holder);
            answer.send(vec![other.clone()]).expect("somebody waits for it");
            drop(received.recv().await);
            drop(received);
        };
        let asks = async {
            assert_eq!(follower.waiting_for(&holder).await, Some(vec![other.clone()]));
            assert_eq!(follower.waiting_for(&holder).await, None, "the question is lost");
            assert_eq!(follower.waiting_for(&holder).await, None, "nobody listens");
            follower.cycle(vec![holder.clone()]).await;
        };
        tokio::join!(answers, asks);
    }

    /// As if a question that is still there after the loop has ended were waited for: whoever asks keeps it there.
    #[tokio::test]
    async fn nobody_waits_for_an_answer_once_the_loop_has_ended() {
        let holder = Seen::of(&live(key("Cluster", "c"), "c"));
        let (follower, mut received) = Follower::channel();
        let ends = async {
            let question = received.recv().await.expect("it is asked");
            drop(received);
            question
        };
        let (question, answer) = tokio::join!(ends, follower.waiting_for(&holder));
        assert_eq!(answer, None);
        drop(question);
    }
}
