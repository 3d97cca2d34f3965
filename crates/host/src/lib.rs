//! The outside world as values passed in: files, locks, HTTP, environment, clock.
