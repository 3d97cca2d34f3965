//! Fakes and fixtures for tests: servers on loopback, repositories, helpers.
