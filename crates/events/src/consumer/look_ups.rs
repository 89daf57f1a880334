//! Look-ups of what is absent, one after the other. Each stays under way if the caller stops waiting for its answer.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use kindex_model::object::Uid;
use tokio::time::{sleep, timeout};

use super::absences::{Absences, Due};
use crate::event::Message;
use crate::held::{Absent, Confirmed, Existence, HeldUids, Limits, LookUp, Stop};

/// The longest wait for the answer of one: events wait for the first one after a replay.
const LOOK_UP_MAX: Duration = Duration::from_secs(10);

/// What is absent after a replay, and the look-up of one of these.
pub(super) struct LookUps {
    pub(super) absences: Absences,
    next: NextLookUp,
}

/// The next look-up.
enum NextLookUp {
    /// It is to begin, if one is needed, and waits so long first.
    Due(Option<Duration>),
    /// It has begun, the pause before it included.
    UnderWay(BoxFuture<'static, (Uid, Existence)>),
}

impl LookUps {
    /// Those after a replay that has ended with this message. They do not wait for the look-up or the pause of an
    /// earlier one.
    pub(super) fn new(absent: Absent, ended: Message, earlier: Option<Self>) -> Self {
        Self {
            absences: Absences::new(absent, ended, earlier.map(|earlier| earlier.absences)),
            next: NextLookUp::Due(None),
        }
    }

    /// What is to be returned by now. If that is nothing, a look-up is under way afterwards.
    pub(super) fn known(
        &mut self,
        api: &Arc<dyn LookUp>,
        held: &HeldUids,
        topic: &str,
        limits: &Limits,
    ) -> Option<Result<Confirmed, Stop>> {
        let NextLookUp::Due(pause) = self.next else {
            return None;
        };
        match self.absences.due(held, topic, limits) {
            Ok(Due::LookUp(uid)) => {
                self.next = NextLookUp::UnderWay(look_up(api.clone(), uid, pause).boxed());
                None
            }
            Ok(Due::Return(confirmed)) => Some(Ok(confirmed)),
            Err(stop) => Some(Err(stop)),
        }
    }

    /// Waits for the answer of the look-up that is under way.
    pub(super) async fn answer(&mut self) {
        let (uid, existence) = match &mut self.next {
            NextLookUp::UnderWay(answer) => answer.await,
            NextLookUp::Due(_) => pending().await,
        };
        self.next = NextLookUp::Due(self.absences.answered(&uid, existence));
    }
}

async fn look_up(api: Arc<dyn LookUp>, uid: Uid, pause: Option<Duration>) -> (Uid, Existence) {
    if let Some(pause) = pause {
        sleep(pause).await;
    }
    let answer = timeout(LOOK_UP_MAX, api.look_up(&uid)).await;
    (uid, answer.unwrap_or(Existence::Unknown))
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use tokio::time::Instant;

    use super::*;
    use crate::consumer::absences::LOOK_UP_AGAIN_AFTER;
    use crate::source::PartitionAssignment;

    const TOPIC: &str = "runs.example.com";

    /// An API that is away.
    struct Away;

    #[async_trait]
    impl LookUp for Away {
        async fn look_up(&self, _: &Uid) -> Existence {
            Existence::Unknown
        }
    }

    /// What is absent of a partition that has come to others.
    fn replayed(held: &mut HeldUids, earlier: Option<LookUps>) -> LookUps {
        let assignment = PartitionAssignment {
            partition_of: Box::new(|_: &Uid| 1),
            partitions: [0, 1].into(),
            added: [1].into(),
            from: None,
        };
        assert!(held.keep(&assignment).is_empty());
        let ended = Message::Replayed(None);
        let absent = held.take(&ended).expect("it has ended");
        LookUps::new(absent, ended, earlier)
    }

    /// One object that is absent and was looked up once.
    async fn unknown() -> (HeldUids, LookUps) {
        let mut held = HeldUids::new([Uid::from("a")]);
        let mut look_ups = replayed(&mut held, None);
        assert_eq!(known(&mut look_ups, &held), None);
        look_ups.answer().await;
        let unknown = Confirmed {
            gone: Vec::new(),
            unknown: vec![Uid::from("a")],
        };
        assert_eq!(known(&mut look_ups, &held), Some(Ok(unknown)));
        (held, look_ups)
    }

    fn known(look_ups: &mut LookUps, held: &HeldUids) -> Option<Result<Confirmed, Stop>> {
        let api: Arc<dyn LookUp> = Arc::new(Away);
        look_ups.known(&api, held, TOPIC, &Limits::DEFAULT)
    }

    /// As if the pause began anew with each call, and ended for nobody who asks more often.
    #[tokio::test(start_paused = true)]
    async fn who_stops_waiting_goes_on_with_the_pause_before_a_look_up() {
        let (held, mut look_ups) = unknown().await;
        for is_over in [false, true] {
            assert_eq!(known(&mut look_ups, &held), None);
            let answered = timeout(LOOK_UP_AGAIN_AFTER * 3 / 5, look_ups.answer()).await;
            assert_eq!(answered.is_ok(), is_over);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_of_a_replay_waits_for_no_pause_of_an_earlier_one() {
        for has_begun in [false, true] {
            let (mut held, mut look_ups) = unknown().await;
            if has_begun {
                assert_eq!(known(&mut look_ups, &held), None);
                let answered = timeout(LOOK_UP_AGAIN_AFTER / 2, look_ups.answer()).await;
                assert!(answered.is_err(), "it waits");
            }
            look_ups = replayed(&mut held, Some(look_ups));
            let begin = Instant::now();
            assert_eq!(known(&mut look_ups, &held), None);
            look_ups.answer().await;
            assert_eq!(begin.elapsed(), Duration::ZERO, "{has_begun}");
        }
    }
}
