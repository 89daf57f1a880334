//! Storage versions from outside: `kindex versions` on a kube-apiserver with SQLite, for a kind of several versions.

mod stage;

mod walk;

mod certified;

mod replicas;

mod overtaken;

mod unseen;

mod waiting;

mod unknown;

mod everything;
