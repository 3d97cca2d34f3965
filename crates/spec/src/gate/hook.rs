//! The gate's findings about hooks: a failed hook that is set to `fail` refuses.

use crucible_model::{Code, Finding};

use super::GateFinding;
use crate::hook::what_happened;
use crate::receipt::{HookEnd, HookReceipt, OnFail};

/// The code for a required hook that timed out.
pub(super) const TIMED_OUT: Code = Code::new("gate-hook-timed-out");

/// The findings about the hooks around a gate: an error for each one that is set to `fail` and failed or
/// timed out.
#[must_use]
pub(crate) fn gate_hook_findings(hooks: &[HookReceipt]) -> Vec<GateFinding> {
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
                let hint = format!(
                    "The {} hook {}",
                    hook.moment.as_str(),
                    what_happened(hook, 0)
                );
                Some(Finding::error(Code::new("gate-hook-failed"), name, hint))
            }
        }
    };
    // It is about no file of the spec.
    decisive
        .filter_map(finding)
        .map(|finding| GateFinding {
            finding,
            file: String::new(),
        })
        .collect()
}
