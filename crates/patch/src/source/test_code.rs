//! The test code inside a source file, and whether it survives a change.

use std::collections::BTreeSet;

/// The test code inside a source file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct TestCode<'a> {
    /// The test items.
    pub(crate) items: Vec<TestItem<'a>>,
    /// The conditions under which the whole file is compiled.
    pub(crate) conditions: Vec<&'a [u8]>,
}

/// One test item with its attributes or decorators.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct TestItem<'a> {
    /// How deep in other items it stands.
    pub(crate) depth: usize,
    /// Its text; of a module only the part before its items.
    pub(crate) text: &'a [u8],
    /// The items of a test module.
    pub(crate) inside: Vec<TestItem<'a>>,
    /// What it brings into the module that it stands in.
    pub(crate) brings: NewNames<'a>,
    /// The words in it, where it stands in a test module.
    pub(crate) words: Vec<&'a [u8]>,
}

/// What a new item would do to the items that stand beside it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) enum NewNames<'a> {
    /// Only these names: a file that does not use them is not affected.
    Names(Vec<&'a [u8]>),
    /// Nobody can tell.
    #[default]
    Anything,
}

impl TestCode<'_> {
    /// Whether every test item of `self` still stands, letter for letter and in this order, in `after`. New ones may
    /// stand between them, in a test module only such as leave the meaning of the old ones alone; the conditions may
    /// not change as soon as there is something to lose.
    pub(crate) fn survives_in(&self, after: &TestCode<'_>) -> bool {
        if self.items.is_empty() {
            return true;
        }
        let mut rest = after.items.iter();
        self.items
            .iter()
            .all(|item| rest.any(|candidate| item.is_kept_as(candidate)))
            && self.conditions == after.conditions
    }
}

impl TestItem<'_> {
    fn is_kept_as(&self, candidate: &TestItem<'_>) -> bool {
        if self.depth != candidate.depth || self.text != candidate.text {
            return false;
        }
        let mut rest = self.inside.iter().peekable();
        let mut added = Vec::new();
        for item in &candidate.inside {
            if rest
                .next_if(|requested| requested.is_kept_as(item))
                .is_none()
            {
                added.push(item);
            }
        }
        let used: BTreeSet<&[u8]> = if added.is_empty() {
            BTreeSet::new()
        } else {
            self.inside.iter().flat_map(TestItem::words).collect()
        };
        rest.peek().is_none()
            && added.iter().all(|item| match &item.brings {
                NewNames::Names(names) => names.iter().all(|name| !used.contains(name)),
                NewNames::Anything => false,
            })
    }

    fn words(&self) -> Vec<&[u8]> {
        self.words
            .iter()
            .copied()
            .chain(self.inside.iter().flat_map(TestItem::words))
            .collect()
    }
}
