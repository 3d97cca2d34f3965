//! Any edits, tried on real files.

use proptest::prelude::*;

use super::*;

mod properties {
    use crucible_testkit::expensive_cases;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(expensive_cases()))]

        /// Any set of edits over a few names: all are applied, or nothing changes.
        #[test]
        fn any_edits_are_atomic(
            files in prop::collection::btree_map("[ab]{1,2}", "[xy\r\n]{0,3}", 0..5),
            edits in prop::collection::vec(("[ab]{1,2}(/[ab])?", prop::option::of("[xy\r\n]{0,3}"), prop::option::of("[xy\r\n]{0,3}"), any::<bool>()), 0..5),
        ) {
            let fixture = Fixture::new(&[]);
            files.iter().for_each(|(path, content)| fixture.put(path, content));
            // Half of the edits have the current digest.
            let edits: Vec<TreeEdit> = edits
                .iter()
                .map(|(path, guess, after, knows)| {
                    let before = if *knows { files.get(path).cloned() } else { guess.clone() };
                    edit(path, before.as_deref(), after.as_deref())
                })
                .collect();
            let before = fixture.tree();
            match fixture.edit(&edits) {
                Ok(_) => {
                    for edit in &edits {
                        let now = std::fs::read(fixture.at(edit.path.as_str())).ok();
                        prop_assert_eq!(&now, &edit.after);
                    }
                    let named: Vec<&str> = edits.iter().map(|edit| edit.path.as_str()).collect();
                    for (path, content) in &files {
                        if !named.contains(&path.as_str()) {
                            prop_assert_eq!(std::fs::read(fixture.at(path)).unwrap(), content.as_bytes());
                        }
                    }
                }
                Err(_) => prop_assert_eq!(fixture.tree(), before),
            }
            fixture.assert_clean();
        }
    }
}
