//! All of them are reported, and the one good column stands.

use kindex_model::indexed::IndexedObject;

#[derive(IndexedObject)]
#[indexed(table = "model")]
#[indexed(column = "owner", path = spec.owner)]
#[indexed(column = "Team", path = spec.team)]
#[indexed(column = "budget", path = spec.budget, sql = "MONEY")]
#[indexed(colunm = "region", path = spec.region)]
struct Model {
    spec: Spec,
}

struct Spec {
    owner: String,
    team: String,
    budget: i64,
    region: String,
}

fn main() {}
