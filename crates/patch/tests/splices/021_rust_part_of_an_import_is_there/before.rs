use std::collections::{BTreeMap, HashMap as Map};

fn a() {}
