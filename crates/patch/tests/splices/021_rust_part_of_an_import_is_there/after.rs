use std::collections::{BTreeMap, HashMap as Map};
use std::collections::BTreeSet;

fn a() {
    b()
}
