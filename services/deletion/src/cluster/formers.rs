//! Which live objects are held by those of the cluster from which they were moved. Only whoever follows the cluster
//! knows that: what is deleted in the archive asks, and the loop over the cluster answers.

use tokio::sync::{mpsc, oneshot};

use crate::object::Object;

/// Questions that wait to be answered.
const ASKED_MAX: usize = 1;

/// Whether a live object is held so.
#[derive(Debug)]
pub(crate) struct Question {
    holder: Object,
    answer: oneshot::Sender<Option<bool>>,
}

impl Question {
    /// Answers what is known of the object.
    pub(crate) fn answer(self, known: impl FnOnce(&Object) -> Option<bool>) {
        let known = known(&self.holder);
        // Whoever asked may have ended.
        let _unheard = self.answer.send(known);
    }
}

/// Where such questions are asked.
#[derive(Clone, Debug)]
pub(crate) struct Formers {
    questions: mpsc::Sender<Question>,
}

impl Formers {
    /// With the questions as they come.
    pub(crate) fn channel() -> (Self, mpsc::Receiver<Question>) {
        let (questions, asked) = mpsc::channel(ASKED_MAX);
        (Self { questions }, asked)
    }

    /// Whether an object of the cluster that is not being deleted holds a live one, whose fields may name it, but do
    /// not. Nothing where that is not known, or nobody answers any more.
    pub(super) async fn hold(&self, holder: &Object) -> Option<bool> {
        let (answer, answered) = oneshot::channel();
        let holder = holder.clone();
        self.questions.send(Question { holder, answer }).await.ok()?;
        answered.await.ok().flatten()
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
        let (formers, mut asked) = Formers::channel();
        let answers = async {
            let question = asked.recv().await.expect("it is asked");
            question.answer(|holder| Some(holder.uid == "c"));
            drop(asked.recv().await);
            drop(asked);
        };
        let asks = async {
            assert_eq!(formers.hold(&object).await, Some(true));
            assert_eq!(formers.hold(&object).await, None, "the question is lost");
            assert_eq!(formers.hold(&object).await, None, "nobody listens");
        };
        tokio::join!(answers, asks);
    }
}
