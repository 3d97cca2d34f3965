//! The program as a user meets it: the real binary, real repositories, and a model server on loopback.
//!
//! Each test has its own home, repository and server, and the program inherits nothing but `PATH`; so the tests
//! may run side by side and say the same on every machine.

#![expect(
    clippy::disallowed_methods,
    reason = "tests start the program and look at the files it leaves"
)]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail as tests do"
)]

mod accepting;
mod agents;
mod answers;
mod attest;
mod attest_docs;
mod attest_door;
mod attest_key;
mod attest_push;
mod attest_token;
mod attest_tools;
mod behaviors;
mod budget;
mod code_ipi;
mod coding_agents;
mod coding_agents_random;
mod completion;
mod config_set;
mod context;
mod council;
mod council_run;
mod crawl;
mod demo;
mod doctor;
mod doctor_observed;
mod documents;
mod eval;
mod explain;
mod find;
mod forged;
mod full_disk;
mod gate_settings;
mod gate_world;
mod gates;
mod given;
mod happy_path;
mod hostile_text;
mod interrupt;
mod landing;
mod links_in_runs;
mod makefiles;
mod mcp;
mod messages;
mod models;
mod more_files;
mod ordinary;
mod outbox;
mod patch;
mod patch_apply;
mod phoenix;
mod plan;
mod providers;
mod providers_doc;
mod reach;
mod record;
mod repositories;
mod run_worst;
mod sandbox_input;
mod sandbox_limits;
mod sandbox_plants;
mod sandbox_run_by_git;
mod sandbox_unclear;
mod sandbox_words;
mod sandbox_writes;
mod scope;
mod secrets;
mod see;
mod see_browser;
mod see_landing;
mod see_project;
mod single_tools;
mod skill;
mod skill_build;
mod skill_calls;
mod skill_check;
mod skill_hidden;
mod skill_hosts;
mod skill_research;
mod skill_runs;
mod skill_swap;
mod skill_tampered;
mod skill_trust;
mod skill_verify;
mod skill_walls;
mod snapshots;
mod spec;
mod stats;
mod support;
mod told_states;
mod traces;
mod usage;
mod verdicts;
mod verify_record;
mod watch;
mod without_model;
