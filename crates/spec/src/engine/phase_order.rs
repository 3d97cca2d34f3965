//! Decides which phases may run now, and which come next: pure functions of the state of a spec.
//!
//! The order is requirements, design, tasks, review, fixup, final. A phase may run if the phase before it
//! and all phases it depends on succeeded, and their artifacts are unchanged on disk. A stale artifact
//! may be used, with a warning. Any phase that may run may also run again.

use crucible_llm::ReceiptWarning;

use crate::error::SpecError;
use crate::json_output::{PhaseCondition, standing};
use crate::phase::{PhaseDefinition, phases};
use crate::phase_id::PhaseId;
use crate::state::SpecState;

/// The definition of a phase.
pub(super) fn definition(phase: PhaseId) -> Option<&'static dyn PhaseDefinition> {
    phases()
        .into_iter()
        .find(|definition| definition.id() == phase)
}

/// The phases that may run now, in order.
#[must_use]
pub(crate) fn valid_phases(state: &SpecState) -> Vec<PhaseId> {
    PhaseId::ALL
        .into_iter()
        .filter(|phase| obstacle(state, *phase).is_none())
        .collect()
}

/// The phases up to `through` that still have to run: the first one that is unfinished or stale, and all
/// after it. Empty if all are done.
#[must_use]
pub(crate) fn phases_to_run(state: &SpecState, through: PhaseId) -> Vec<PhaseId> {
    let is_done = |phase: &PhaseId| {
        state
            .phase(*phase)
            .is_some_and(|known| standing(state, known) == PhaseCondition::Success)
    };
    through.up_to().skip_while(is_done).collect()
}

/// Checks whether the phase may run now.
///
/// # Errors
///
/// [`SpecError::Transition`] gives the obstacle and the phases that may run.
pub(crate) fn check_transition(state: &SpecState, phase: PhaseId) -> Result<(), SpecError> {
    match obstacle(state, phase) {
        None => Ok(()),
        Some(why) => Err(SpecError::Transition {
            spec: state.spec.clone(),
            phase,
            why,
            valid: valid_phases(state),
        }),
    }
}

/// A warning about stale artifacts that a phase depends on.
pub(super) fn stale_ground(state: &SpecState, phase: PhaseId) -> Option<ReceiptWarning> {
    let stale = |before: &PhaseId| {
        state
            .phase(*before)
            .is_some_and(|known| standing(state, known) == PhaseCondition::Stale)
    };
    let names: Vec<&str> = prerequisites(phase)
        .into_iter()
        .filter(stale)
        .map(PhaseId::as_str)
        .collect();
    (!names.is_empty()).then(|| ReceiptWarning {
        kind: "stale_input".to_owned(),
        message: format!(
            "made from outdated artifacts: {}; their own inputs have changed since",
            names.join(", ")
        ),
    })
}

/// The phases whose artifacts a phase reads.
pub(crate) fn upstream_phases(phase: PhaseId) -> &'static [PhaseId] {
    definition(phase)
        .map(PhaseDefinition::upstream)
        .unwrap_or_default()
}

/// The phases that must succeed first: the one before it, and those whose artifacts it reads.
fn prerequisites(phase: PhaseId) -> Vec<PhaseId> {
    let mut inputs = upstream_phases(phase).to_vec();
    inputs.extend(phase.predecessor());
    inputs.sort_unstable();
    inputs.dedup();
    inputs
}

/// The reason why a phase may not run.
fn obstacle(state: &SpecState, phase: PhaseId) -> Option<String> {
    // The closest earlier phase is named first; an earlier one only if that one is fine.
    prerequisites(phase).into_iter().rev().find_map(|before| {
        let found = state
            .phase(before)
            .map_or(PhaseCondition::NotRun, |known| standing(state, known));
        match found {
            PhaseCondition::Success | PhaseCondition::Stale => None,
            PhaseCondition::NotRun => Some(format!("{before} has not run yet")),
            PhaseCondition::DryRun => Some(format!("{before} has only had a dry run")),
            PhaseCondition::Failed => Some(format!("the last run of {before} failed")),
            PhaseCondition::Changed => Some(format!(
                "artifacts/{} was changed or deleted since {before} wrote it",
                before.artifact()
            )),
            PhaseCondition::Damaged => Some(format!("a receipt of {before} cannot be trusted")),
        }
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::gate::sample::{
        artifact, done_up_to, dry_run, failure, finished_phase, noon, success, untouched,
    };
    use crate::state::FileState;

    /// The state of a phase in a constructed spec.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum PhaseSetup {
        Done,
        Failed,
        Dry,
        Changed,
        Never,
    }

    fn state(phase_setups: &[PhaseSetup]) -> SpecState {
        let mut state = done_up_to(None, noon());
        for ((known, made), phase) in state.phases.iter_mut().zip(phase_setups).zip(PhaseId::ALL) {
            *known = match made {
                PhaseSetup::Done | PhaseSetup::Changed => {
                    finished_phase(phase, success(phase, 1, noon()))
                }
                PhaseSetup::Failed | PhaseSetup::Dry | PhaseSetup::Never => untouched(phase),
            };
            match made {
                PhaseSetup::Failed => {
                    known.newest_real = Some(failure(phase, 1, noon()));
                    known.newest.clone_from(&known.newest_real);
                }
                PhaseSetup::Dry => known.newest = Some(dry_run(phase, 1, noon())),
                PhaseSetup::Changed => {
                    let own = artifact(phase);
                    known
                        .outputs
                        .iter_mut()
                        .filter(|file| file.record.path == own.path)
                        .for_each(|file| {
                            file.found = FileState::Differs;
                        });
                }
                PhaseSetup::Done | PhaseSetup::Never => {}
            }
        }
        state
    }

    fn any_setup() -> impl Strategy<Value = PhaseSetup> {
        prop::sample::select(vec![
            PhaseSetup::Done,
            PhaseSetup::Done,
            PhaseSetup::Failed,
            PhaseSetup::Dry,
            PhaseSetup::Changed,
            PhaseSetup::Never,
        ])
    }

    mod properties {
        use super::*;

        proptest! {
            #[test]
            fn phase_needs_its_inputs_done(made in prop::collection::vec(any_setup(), 6)) {
                let state = state(&made);
                let is_done = |phase: &PhaseId| made[PhaseId::ALL.iter().position(|known| known == phase).unwrap()] == PhaseSetup::Done;
                let expected: Vec<PhaseId> = PhaseId::ALL
                    .into_iter()
                    .filter(|phase| {
                        let before = phase.predecessor();
                        before.as_ref().is_none_or(is_done) && upstream_phases(*phase).iter().all(is_done)
                    })
                    .collect();
                prop_assert_eq!(&valid_phases(&state), &expected);
                for phase in PhaseId::ALL {
                    match check_transition(&state, phase) {
                        Ok(()) => prop_assert!(expected.contains(&phase)),
                        Err(SpecError::Transition { valid, .. }) => {
                            prop_assert!(!expected.contains(&phase));
                            prop_assert_eq!(&valid, &expected);
                        }
                        Err(other) => prop_assert!(false, "{}", other),
                    }
                    // The phases to run begin with one that may run, without gaps.
                    let to_run = phases_to_run(&state, phase);
                    if let Some(first) = to_run.first() {
                        prop_assert!(!is_done(first) && expected.contains(first));
                        prop_assert_eq!(&to_run, &phase.up_to().filter(|later| later >= first).collect::<Vec<_>>());
                    } else {
                        prop_assert!(phase.up_to().all(|phase| is_done(&phase)));
                    }
                }
            }
        }
    }

    #[test]
    fn obstacle_of_phase_is_named() {
        let why = |phase_setups: [PhaseSetup; 6], phase| match check_transition(
            &state(&phase_setups),
            phase,
        ) {
            Err(error @ SpecError::Transition { .. }) => error.to_string(),
            other => panic!("{other:?}"),
        };
        use PhaseSetup::{Changed, Done, Dry, Failed, Never};
        assert_eq!(
            why([Done, Failed, Never, Never, Never, Never], PhaseId::Tasks),
            "tasks cannot run now: the last run of design failed; valid next phases: requirements, design"
        );
        assert_eq!(
            why([Dry, Never, Never, Never, Never, Never], PhaseId::Design),
            "design cannot run now: requirements has only had a dry run; valid next phases: requirements"
        );
        assert!(
            why([Changed, Done, Done, Never, Never, Never], PhaseId::Review).contains(
                "artifacts/00-requirements.md was changed or deleted since requirements wrote it"
            )
        );
    }
}
