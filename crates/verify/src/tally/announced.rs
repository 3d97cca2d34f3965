//! Announced tests that wait for their result. Parallel runners may report in any order, so open tests are
//! counted, not matched one by one. A result without an announcement, which was before the kept part, settles
//! no later test.

/// Announced tests without a result.
#[derive(Debug, Default)]
pub(super) struct AnnouncedTests {
    /// Announcements without a report.
    open: u64,
    /// Tests without a result.
    tests: u64,
}

impl AnnouncedTests {
    pub(super) fn announce(&mut self, tests: u64) {
        self.open = self.open.saturating_add(1);
        self.tests = self.tests.saturating_add(tests);
    }

    /// A report on this many tests.
    pub(super) fn report(&mut self, tests: u64) {
        if self.open > 0 {
            self.open -= 1;
            self.tests = self.tests.saturating_sub(tests);
        }
    }

    /// Returns the number of tests without a result; an announcement of zero tests without a report counts as
    /// one.
    pub(super) fn unfinished(&self) -> u64 {
        self.tests.max(self.open)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_tests_are_announced_without_report() {
        let mut announced = AnnouncedTests::default();
        announced.report(7);
        assert_eq!(announced.unfinished(), 0);
        announced.announce(3);
        announced.announce(0);
        announced.announce(2);
        assert_eq!(announced.unfinished(), 5);
        announced.report(2);
        announced.report(0);
        assert_eq!(announced.unfinished(), 3);
        announced.report(1);
        assert_eq!(announced.unfinished(), 2);
        announced.report(2);
        assert_eq!(announced.unfinished(), 2, "nothing was open");
        let mut empty = AnnouncedTests::default();
        empty.announce(0);
        assert_eq!(empty.unfinished(), 1);
        empty.announce(u64::MAX);
        empty.announce(u64::MAX);
        assert_eq!(empty.unfinished(), u64::MAX);
    }
}
