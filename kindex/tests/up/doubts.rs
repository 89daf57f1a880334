//! What `kindex deletion` hears of another service whose events lack objects that have references of ours: it is told
//! why they are not believed, and a restart believes them.

use std::collections::BTreeSet;
use std::sync::Mutex;

use kindex_deletion::object::KindName;
use kindex_deletion::peer::follow::{PeerEvent, TargetUids, follow};
use kindex_deletion::peer::{Peers, Transport};
use kindex_harness::ports;
use kindex_harness::wait::WAIT_MAX;
use kindex_kube_client::peer::Address;
use kindex_model::object::Uid;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::events::create;
use super::process::{Running, kubectl_is_there, wait_for};

/// What a follower of projects says of all that exists, where objects with these uids have references of ours.
async fn judged(peers: &Peers, kind: &KindName, held: BTreeSet<Uid>) -> PeerEvent {
    let (send, mut events) = mpsc::channel(1_024);
    let held = TargetUids::new(Mutex::new(held));
    let peer = peers.of(kind).expect("it is known");
    let judged = async {
        loop {
            match events.recv().await.expect("it goes on") {
                PeerEvent::Happened(..) | PeerEvent::Heard(_) | PeerEvent::Silent(..) => {}
                judged => return judged,
            }
        }
    };
    tokio::select! {
        () = follow(peer, &[], &held, &send) => panic!("somebody listens"),
        judged = timeout(WAIT_MAX, judged) => judged.expect("a replay ends"),
    }
}

#[test]
fn events_that_lack_too_much_are_doubted_with_what_can_be_done_and_believed_after_a_restart() {
    if !kubectl_is_there() {
        return;
    }
    let listen = format!("127.0.0.1:{}", ports::reserve());
    let run = Running::start(&["--listen", &listen]);
    create(&run, "there");
    wait_for("the row", || run.get(&["projects"]).contains("there"));
    let kind = KindName::new("michelangelo.api", "Project");
    let address = Address {
        name: "identity".to_owned(),
        url: format!("http://{listen}"),
        ca_file: None,
        token_file: None,
    };
    let peers = Peers::new([(kind.clone(), address)], &Transport::Events);
    let runtime = Runtime::new().expect("a runtime");

    let lost = (0..11).map(|number| Uid::from(format!("lost-{number}").as_str()));
    let doubted = runtime.block_on(judged(&peers, &kind, lost.collect()));
    let PeerEvent::Doubted(of, why) = doubted else {
        panic!("believed: {doubted:?}");
    };
    assert_eq!(of, kind);
    assert!(why.contains("11 of 11 objects of projects.michelangelo.api"), "{why}");
    assert!(why.contains("restart this process") && !why.contains("limits"), "{why}");

    // A process that starts holds nothing that is gone.
    let believed = runtime.block_on(judged(&peers, &kind, BTreeSet::new()));
    assert_eq!(believed, PeerEvent::Replayed(kind, Vec::new()));
}
