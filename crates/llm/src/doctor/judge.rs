//! Judges a diagnosis: whether a run could start, and what would help.

use crucible_model::{Code, Finding, Level, Verdict};
use crucible_sandbox::Strength;

use super::program::{GIT, GIT_AT_LEAST};
use super::{Diagnosis, NeededBy, Problem, ProgramCheck, ProgramState, ProviderCheck, Readiness};
use crate::registry::provider;

/// Judges a diagnosis. An error is anything that prevents a run: no git, a configured provider that is
/// not ready and has no ready fallback, missing layers of a required sandbox, an unsupported strategy. A
/// missing choice of provider is a warning; a program that only some commands need is an information.
#[must_use]
pub fn verdict(seen: &Diagnosis) -> Verdict {
    let mut findings = choice(seen);
    if let Some(error) = &seen.strategy {
        let hint = "Run `export CRUCIBLE_LLM_EXECUTION_STRATEGY=controlled`, or set [llm] execution_strategy.";
        findings.push(Finding::error(
            Code::new("doctor-strategy-refused"),
            error.to_string(),
            hint,
        ));
    }
    let mut verdict = Verdict::new(findings);
    verdict.merge(Verdict::new(
        seen.programs
            .iter()
            .filter_map(|own| program(own, seen))
            .collect(),
    ));
    verdict.merge(seen.layers.verdict(seen.strength));
    verdict
}

/// The configured provider and its fallback.
fn choice(seen: &Diagnosis) -> Vec<Finding> {
    if seen.provider.is_empty() {
        let names: Vec<&str> = seen
            .providers
            .iter()
            .map(|check| check.provider.as_str())
            .collect();
        let next = format!(
            "Run `export CRUCIBLE_LLM_PROVIDER=NAME`, with one of {}",
            names.join(", ")
        );
        let unset = provider("").err().as_ref().map(Problem::from);
        let warning = |problem: Problem| {
            Finding::warning(
                Code::new("doctor-provider-unset"),
                problem.what,
                next.clone(),
            )
        };
        return unset.map(warning).into_iter().collect();
    }
    let chosen = candidate(&seen.provider, seen);
    let fallback = (!seen.fallback.is_empty()).then(|| candidate(&seen.fallback, seen));
    let answers = seen.answers();
    let mut findings = Vec::new();
    if let Err(problem) = &chosen {
        let (level, hint) = match answers {
            Some(other) => (
                Level::Warning,
                format!("{} answers instead; {}", other.provider, problem.next),
            ),
            None => (Level::Error, problem.next.clone()),
        };
        findings.push(unready(&seen.provider, level, problem, hint));
    }
    if let Some(Err(problem)) = &fallback {
        findings.push(unready(
            &seen.fallback,
            Level::Warning,
            problem,
            problem.next.clone(),
        ));
    }
    let client = answers.and_then(|check| check.program.as_ref());
    findings.extend(client.and_then(|client| mute(client, Level::Warning)));
    findings
}

fn unready(name: &str, level: Level, problem: &Problem, hint: String) -> Finding {
    let code = Code::new("doctor-provider-unready");
    Finding {
        code,
        level,
        subject: format!("{name}: {}", problem.what),
        hint,
    }
}

/// A program that exists but does not state its version.
fn mute(program: &ProgramCheck, level: Level) -> Option<Finding> {
    let problem = program
        .problem
        .as_deref()
        .filter(|_| program.state == ProgramState::Found)?;
    let place = program.path.as_ref().unwrap_or(&program.name);
    let subject = format!("{place}: {problem}");
    let hint =
        format!("Run `{place} --version` yourself; it may need files that the sandbox hides.");
    Some(Finding {
        code: Code::new("doctor-program-mute"),
        level,
        subject,
        hint,
    })
}

impl Diagnosis {
    /// The provider that would answer a run: the configured one, or its fallback; none if neither is
    /// ready.
    #[must_use]
    pub fn answers(&self) -> Option<&ProviderCheck> {
        let could = |name: &str| candidate(name, self).ok();
        // Without a configured provider there is no fallback.
        if self.provider.is_empty() {
            None
        } else {
            could(&self.provider).or_else(|| could(&self.fallback))
        }
    }
}

/// The provider of this name if it is ready, else what is missing.
fn candidate<'a>(name: &str, seen: &'a Diagnosis) -> Result<&'a ProviderCheck, Problem> {
    match seen.providers.iter().find(|check| check.provider == name) {
        Some(check) if check.readiness != Readiness::NotReady => Ok(check),
        Some(check) => Err(check.lacks().unwrap_or_else(|| Problem {
            what: "it is not ready".to_owned(),
            next: "see its settings".to_owned(),
        })),
        None => Err(provider(name).err().as_ref().map_or_else(
            || Problem {
                what: "it was not checked".to_owned(),
                next: "try again".to_owned(),
            },
            Problem::from,
        )),
    }
}

/// A program that Crucible itself uses.
fn program(own: &ProgramCheck, seen: &Diagnosis) -> Option<Finding> {
    let level = match (own.needed_by, seen.strength) {
        (NeededBy::EveryRun, _) | (NeededBy::Sandbox, Strength::Required) => Level::Error,
        (NeededBy::Sandbox, Strength::BestEffort) => Level::Warning,
        (NeededBy::Sandbox, Strength::Off) | (NeededBy::Provider | NeededBy::SomeCommands, _) => {
            Level::Info
        }
    };
    let ProgramCheck {
        name,
        purpose,
        install,
        ..
    } = own;
    if let (ProgramState::Missing | ProgramState::Unusable, Some(problem)) =
        (own.state, &own.problem)
    {
        let hint = format!("Run `{install}`; {name} is needed for {purpose}.");
        let code = Code::new("doctor-program-missing");
        let subject = match own.state {
            ProgramState::Missing => format!("{name} was not found"),
            ProgramState::Unusable | ProgramState::Found => format!("{name}: {problem}"),
        };
        return Some(Finding {
            code,
            level,
            subject,
            hint,
        });
    }
    if name == GIT && own.is_older_than(GIT_AT_LEAST) {
        let (major, minor) = GIT_AT_LEAST;
        let subject = format!("{name} {}", own.version.as_deref().unwrap_or_default());
        let hint = format!(
            "Run `{}`; {name} {major}.{minor} or later is needed.",
            own.install
        );
        return Some(Finding {
            code: Code::new("doctor-program-old"),
            level,
            subject,
            hint,
        });
    }
    mute(own, level.min(Level::Warning))
}
