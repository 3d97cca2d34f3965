//! What hooks mean to a gate: one that is set to `fail` and did not pass refuses, and is told like everything else that does.

use crucible_model::{Code, Finding};

use super::GateFinding;
use crate::hook::what_happened;
use crate::receipt::{HookEnd, HookReceipt, OnFail};

/// A hook that must not fail ran out of its time.
pub(super) const TIMED_OUT: Code = Code::new("gate-hook-timed-out");

/// What the hooks around a gate add to its findings: an error for each that is set to `fail` and failed, or took too long.
#[must_use]
pub fn gate_hook_findings(hooks: &[HookReceipt]) -> Vec<GateFinding> {
    let decisive = hooks.iter().filter(|hook| hook.on_fail == OnFail::Fail);
    let finding = |hook: &HookReceipt| {
        let name = &hook.name;
        match hook.end {
            HookEnd::Passed => None,
            HookEnd::TimedOut => {
                let hint = format!(
                    "The {} hook took longer than hooks.{name}.timeout_s allows and was killed. Make it \
                    faster, or raise the limit.",
                    hook.moment.as_str()
                );
                Some(Finding::error(TIMED_OUT, name, hint))
            }
            HookEnd::Failed | HookEnd::NotStarted => {
                let hint = format!("The {} hook {}", hook.moment.as_str(), what_happened(hook, 0));
                Some(Finding::error(Code::new("gate-hook-failed"), name, hint))
            }
        }
    };
    // It is about no file of the spec.
    decisive.filter_map(finding).map(|finding| GateFinding { finding, file: String::new() }).collect()
}
