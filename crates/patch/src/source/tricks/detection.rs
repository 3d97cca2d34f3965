//! One construct that was seen.

/// What is done to the tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Tampering {
    /// The process ends, with a status that the tests do not choose.
    Exit,
    /// An assertion means something else than everybody thinks.
    Shadow,
    /// The code is different, or can tell, when it is tested.
    TestAware,
    /// A test does not run, or its result does not count.
    Disabled,
    /// A test's name is bound to something else, or to nothing.
    Replaced,
    /// The code prints what a test runner would.
    Report,
    /// The name of what is called is put together, so that no reader finds it.
    HiddenName,
}

/// Confidence that this is tampering.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Confidence {
    /// Honest code does this too; a reader should look.
    Doubtful,
    /// It has no place in an honest change.
    Certain,
}

/// One construct that was seen.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Detection {
    pub(crate) trick: Tampering,
    pub(crate) weight: Confidence,
    /// The construct, as it would be written.
    pub(crate) what: String,
    /// The test that it is about, where it matters only to one that was there before.
    pub(crate) test: Option<String>,
}

impl Detection {
    pub(super) fn new(trick: Tampering, weight: Confidence, what: impl Into<String>) -> Self {
        Self {
            trick,
            weight,
            what: what.into(),
            test: None,
        }
    }
}
