//! Specifications as a user meets them: from a rough idea to tasks, fixups and a gate.

mod applying;
mod branches;
mod edges;
pub(crate) mod evidence;
mod examples;
mod failure_reports;
mod fixups;
mod fixups_broken_off;
mod fixups_places;
mod forged;
mod gate;
mod guide;
mod hooks;
mod project;
mod run;
mod sources;
mod status;
mod stops;
mod strangers;
pub(crate) mod support;
mod templates;
mod told;
mod tui;
mod walkthroughs;
mod written;
