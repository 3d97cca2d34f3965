//! Derives the consequence of hook results, as a pure function of their receipts.

use crucible_llm::ReceiptWarning;

use super::Hook;
use crate::error::SpecError;
use crate::receipt::{HookEnd, HookReceipt, OnFail};

/// The kind of the warning about a failed hook.
const WARNING: &str = "hook_failed";

/// The consequence of hook results for the phase or the gate.
#[derive(Debug)]
pub enum HookConsequence {
    /// The work continues, with a warning for each failed hook.
    GoOn(Vec<ReceiptWarning>),
    /// The phase or the gate fails: [`SpecError::Hook`] or [`SpecError::HookTimedOut`].
    Fail(SpecError),
}

/// Evaluates the receipts of hooks: the first failed hook that is set to `fail` decides; other failures
/// are warnings. A hook that timed out or could not be started has failed.
#[must_use]
pub(crate) fn weigh_hooks(hooks: &[Hook], receipts: &[HookReceipt]) -> HookConsequence {
    let mut warnings = Vec::new();
    for receipt in receipts {
        let seconds = hooks
            .iter()
            .find(|hook| hook.name == receipt.name)
            .map_or(receipt.duration_ms / 1000, |hook| hook.timeout.as_secs());
        match (receipt.end, receipt.on_fail) {
            (HookEnd::Passed, OnFail::Warn | OnFail::Fail) => {}
            (HookEnd::Failed | HookEnd::NotStarted | HookEnd::TimedOut, OnFail::Warn) => {
                let message = format!(
                    "the hook {} {}",
                    receipt.name,
                    what_happened(receipt, seconds)
                );
                warnings.push(ReceiptWarning {
                    kind: WARNING.to_owned(),
                    message,
                });
            }
            (HookEnd::TimedOut, OnFail::Fail) => {
                return HookConsequence::Fail(SpecError::HookTimedOut {
                    name: receipt.name.clone(),
                    seconds,
                });
            }
            (HookEnd::Failed | HookEnd::NotStarted, OnFail::Fail) => {
                let why = what_happened(receipt, seconds);
                return HookConsequence::Fail(SpecError::Hook {
                    name: receipt.name.clone(),
                    why,
                });
            }
        }
    }
    HookConsequence::GoOn(warnings)
}

/// Describes a failed hook, with the end of its output.
pub(crate) fn what_happened(receipt: &HookReceipt, seconds: u64) -> String {
    let end = match (receipt.end, receipt.exit_code) {
        (HookEnd::Passed, _) => "passed".to_owned(),
        (HookEnd::TimedOut, _) => format!("took longer than {seconds} s and was killed"),
        (HookEnd::NotStarted, _) => "could not be started".to_owned(),
        (HookEnd::Failed, Some(code)) => format!("ended with exit code {code}"),
        (HookEnd::Failed, None) => "was ended".to_owned(),
    };
    match receipt
        .said
        .lines()
        .rev()
        .find(|line| !line.trim().is_empty())
    {
        Some(last) => format!(
            "{end}: {}",
            last.trim().chars().take(300).collect::<String>()
        ),
        None => end,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::hook::HookIsolation;
    use crate::receipt::HookMoment;

    fn hook(name: &str, on_fail: OnFail) -> Hook {
        Hook {
            name: name.to_owned(),
            moment: HookMoment::PostPhase,
            phases: Vec::new(),
            command: vec!["true".to_owned()],
            on_fail,
            timeout: Duration::from_secs(60),
            isolation: HookIsolation::Required,
        }
    }

    fn receipt(hook: &Hook, end: HookEnd, exit_code: Option<i32>) -> HookReceipt {
        HookReceipt {
            name: hook.name.clone(),
            moment: hook.moment,
            end,
            exit_code,
            duration_ms: 1,
            on_fail: hook.on_fail,
            isolation: None,
            said: "first\nlast\n\n".to_owned(),
        }
    }

    #[test]
    fn the_message_says_what_happened() {
        let message = |end, code| {
            let hook = hook("lint", OnFail::Fail);
            match weigh_hooks(std::slice::from_ref(&hook), &[receipt(&hook, end, code)]) {
                HookConsequence::Fail(error) => error.to_string(),
                HookConsequence::GoOn(warnings) => panic!("{warnings:?}"),
            }
        };
        assert_eq!(
            message(HookEnd::Failed, Some(3)),
            "the hook lint failed: ended with exit code 3: last"
        );
        assert_eq!(
            message(HookEnd::NotStarted, None),
            "the hook lint failed: could not be started: last"
        );
        assert_eq!(
            message(HookEnd::TimedOut, None),
            "the hook lint took longer than 60 s"
        );
    }

    mod properties {
        use super::*;

        proptest! {
            /// A failed hook that is set to `fail` stops the work; another one is a warning.
            #[test]
            fn failed_hooks_warn_or_fail_as_configured(
                ends in proptest::collection::vec((0_usize..4, any::<bool>(), 1_i32..256), 0..6)
            ) {
                let kinds = [HookEnd::Passed, HookEnd::Failed, HookEnd::TimedOut, HookEnd::NotStarted];
                let hooks: Vec<Hook> = ends.iter().enumerate().map(|(place, (_, fail, _))| {
                    hook(&format!("h{place}"), if *fail { OnFail::Fail } else { OnFail::Warn })
                }).collect();
                let receipts: Vec<HookReceipt> = ends.iter().zip(&hooks).map(|((kind, _, code), hook)| {
                    let end = kinds[*kind];
                    receipt(hook, end, match end {
                        HookEnd::Passed => Some(0),
                        HookEnd::Failed => Some(*code),
                        HookEnd::TimedOut | HookEnd::NotStarted => None,
                    })
                }).collect();
                let decisive = ends.iter().position(|(kind, fail, _)| *kind != 0 && *fail);
                match (weigh_hooks(&hooks, &receipts), decisive) {
                    (HookConsequence::GoOn(warnings), None) => {
                        prop_assert_eq!(warnings.len(), ends.iter().filter(|(kind, ..)| *kind != 0).count());
                        prop_assert!(warnings.iter().all(|warning| warning.kind == WARNING));
                    }
                    (HookConsequence::Fail(SpecError::HookTimedOut { name, seconds }), Some(place)) => {
                        prop_assert_eq!((name, seconds, ends[place].0), (format!("h{place}"), 60, 2));
                    }
                    (HookConsequence::Fail(SpecError::Hook { name, .. }), Some(place)) => {
                        prop_assert_eq!(name, format!("h{place}"));
                        prop_assert!(ends[place].0 != 2);
                    }
                    (other, decisive) => prop_assert!(false, "{:?} for {:?}", other, decisive),
                }
            }
        }
    }
}
