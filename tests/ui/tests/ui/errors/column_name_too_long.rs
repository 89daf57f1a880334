//! MySQL and MariaDB take 64 characters.

use kindex_model::indexed::IndexedObject;

#[derive(IndexedObject)]
#[indexed(table = "model")]
#[indexed(column = "a_name_that_goes_on_and_on_until_it_is_longer_than_sixty_four_characters", path = spec.owner)]
struct Model {
    spec: Spec,
}

struct Spec {
    owner: String,
}

fn main() {}
