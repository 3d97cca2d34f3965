//! Real processes under the real sandbox: each test starts programs, and looks for what must not be left.

#![expect(
    clippy::disallowed_methods,
    reason = "tests prepare files and act as other programs"
)]
#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod calls;
mod confined;
mod disk;
mod ends;
mod escapes;
mod home;
mod hosts;
mod killed;
mod mounts;
mod read_only;
mod resources;
mod support;
mod trusted;
mod versions;
