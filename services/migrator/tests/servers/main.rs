//! Migrations on real API servers, one or several. What etcd holds afterwards is the judge.

mod stage;

mod zoo;

mod gate;

mod stored;

mod flips;

mod faults;

mod answers;

mod divided;

mod keys;

mod in_tree;
