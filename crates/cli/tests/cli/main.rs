//! The program as a user meets it: the real binary, real repositories, and a model server on loopback.
//!
//! Each test has its own home, repository and server, and the program inherits nothing but `PATH`; so the tests
//! may run side by side and say the same on every machine.

#![expect(clippy::disallowed_methods, reason = "tests start the program and look at the files it leaves")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod agents;
mod answers;
mod behaviors;
mod budget;
mod completion;
mod context;
mod council;
mod crawl;
mod demo;
mod doctor;
mod doctor_observed;
mod documents;
mod find;
mod full_disk;
mod gates;
mod happy_path;
mod hostile_text;
mod landing;
mod messages;
mod models;
mod outbox;
mod patch;
mod patch_apply;
mod plan;
mod providers;
mod providers_doc;
mod reach;
mod record;
mod repositories;
mod run_worst;
mod secrets;
mod spec;
mod support;
mod usage;
mod verify_record;
mod watch;
