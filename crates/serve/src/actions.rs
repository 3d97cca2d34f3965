//! Approving and landing from the page: forms that work once, for one run and one digest.
//!
//! A form has a random token. The server knows which run, action and digest the token is for, and forgets it with its first
//! use, after ten minutes, or when too many forms are open. The person repeats the first digits of the digest. What is
//! done in the end is for exactly that digest, so a change that happened meanwhile is refused.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crucible_host::fs::FsError;
use crucible_host::random;
use crucible_model::{Digest, RunId};

use tokio::time::Instant;
use url::form_urlencoded;

/// How long a form works.
const FORM_LIFE: Duration = Duration::from_secs(600);
/// How many forms can be open.
const MAX_FORMS: usize = 64;
/// How many digits of a digest a person repeats.
pub(crate) const DIGITS: usize = 12;

/// What a page may do besides showing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageRights {
    /// Nothing.
    ReadOnly,
    /// Approve plans and land verified changes, each confirmed with its digest.
    Land,
}

/// An action on a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunActionKind {
    /// Approve the plan with the user's key.
    Approve,
    /// Commit the verified change.
    Land,
}

impl RunActionKind {
    /// The last part of its address.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Land => "land",
        }
    }

    /// Returns the kind of this name.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        [Self::Approve, Self::Land]
            .into_iter()
            .find(|kind| kind.name() == name)
    }
}

/// A confirmed action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunAction {
    /// The run.
    pub run: RunId,
    /// What to do.
    pub kind: RunActionKind,
    /// The digest of the plan or of the patch that the person saw.
    pub digest: Digest,
}

/// A form of a page.
#[derive(Debug, Clone)]
pub(crate) struct ActionForm {
    pub(crate) action: RunAction,
    pub(crate) token: String,
}

/// Why a form is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FormRefusal {
    /// It was used, is too old, or was never given.
    Token,
    /// It is for another run or action.
    Target,
    /// The digits are not those of the digest.
    Digest,
}

impl FormRefusal {
    /// Returns the text of the answer.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::Token => "This form was used or is too old. Open the page again.",
            Self::Target => "This form is for another run or action. Open the page again.",
            Self::Digest => {
                "The digits do not match the digest. Nothing was done; open the page again."
            }
        }
    }
}

/// The open forms.
#[derive(Default)]
pub(crate) struct OpenForms {
    forms: Mutex<VecDeque<OpenForm>>,
}

struct OpenForm {
    /// The digest of the token, so that a comparison takes the same time for each guess.
    token: Digest,
    action: RunAction,
    opened: Instant,
}

impl OpenForms {
    /// Opens a form for an action.
    pub(crate) fn open(&self, action: RunAction, now: Instant) -> Result<ActionForm, FsError> {
        let token = random::token()?;
        let mut forms = self.forms.lock().unwrap_or_else(PoisonError::into_inner);
        while forms.len() >= MAX_FORMS {
            forms.pop_front();
        }
        forms.push_back(OpenForm {
            token: Digest::compute(token.as_bytes()),
            action: action.clone(),
            opened: now,
        });
        Ok(ActionForm { action, token })
    }

    /// Takes the form that a body names, whatever comes of it, and returns its action if everything matches.
    pub(crate) fn take(
        &self,
        run: &RunId,
        kind: RunActionKind,
        body: &[u8],
        now: Instant,
    ) -> Result<RunAction, FormRefusal> {
        let field = |requested: &str| {
            let mut fields = form_urlencoded::parse(body);
            let found = fields.find(|(name, _)| name == requested);
            found
                .map(|(_, value)| value.into_owned())
                .unwrap_or_default()
        };
        let token = Digest::compute(field("token").as_bytes());
        let mut forms = self.forms.lock().unwrap_or_else(PoisonError::into_inner);
        forms.retain(|form| now.duration_since(form.opened) < FORM_LIFE);
        let place = forms.iter().position(|form| form.token == token);
        let form = place.and_then(|place| forms.remove(place));
        let action = form.ok_or(FormRefusal::Token)?.action;
        if action.run != *run || action.kind != kind {
            return Err(FormRefusal::Target);
        }
        let request: String = action.digest.to_string().chars().take(DIGITS).collect();
        if field("digits").trim() != request {
            return Err(FormRefusal::Digest);
        }
        Ok(action)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn action() -> RunAction {
        RunAction {
            run: "run-00001".parse().unwrap(),
            kind: RunActionKind::Land,
            digest: Digest::compute(b"patch"),
        }
    }

    fn body(form: &ActionForm, digits: &str) -> Vec<u8> {
        format!("token={}&digits={digits}", form.token).into_bytes()
    }

    fn digits() -> String {
        action().digest.to_string().chars().take(DIGITS).collect()
    }

    #[test]
    fn form_works_once_for_its_run_action_and_digest() {
        let (forms, now) = (OpenForms::default(), Instant::now());
        let run = action().run;
        let take = |form: &ActionForm, digits: &str| {
            forms.take(&run, RunActionKind::Land, &body(form, digits), now)
        };
        let form = forms.open(action(), now).unwrap();
        assert_eq!(take(&form, &digits()), Ok(action()));
        assert_eq!(take(&form, &digits()), Err(FormRefusal::Token));

        // Each refusal also uses the form.
        for wrong in ["", "0", &digits()[..DIGITS - 1], &"0".repeat(DIGITS)] {
            let form = forms.open(action(), now).unwrap();
            assert_eq!(take(&form, wrong), Err(FormRefusal::Digest), "{wrong}");
            assert_eq!(take(&form, &digits()), Err(FormRefusal::Token));
        }
        let form = forms.open(action(), now).unwrap();
        let other = "run-00002".parse().unwrap();
        let run_action = forms.take(&other, RunActionKind::Land, &body(&form, &digits()), now);
        assert_eq!(run_action, Err(FormRefusal::Target));
        let form = forms.open(action(), now).unwrap();
        let taken = forms.take(&run, RunActionKind::Approve, &body(&form, &digits()), now);
        assert_eq!(taken, Err(FormRefusal::Target));
        for nothing in [&b""[..], b"token=", b"\xff\xfe", b"digits=1"] {
            let taken = forms.take(&run, RunActionKind::Land, nothing, now);
            assert_eq!(taken, Err(FormRefusal::Token));
        }

        let form = forms.open(action(), now).unwrap();
        let later = now + FORM_LIFE;
        let taken = forms.take(&run, RunActionKind::Land, &body(&form, &digits()), later);
        assert_eq!(taken, Err(FormRefusal::Token));
    }

    #[test]
    fn oldest_form_is_dropped_when_there_are_too_many() {
        let (forms, now) = (OpenForms::default(), Instant::now());
        let first = forms.open(action(), now).unwrap();
        for _ in 0..MAX_FORMS {
            forms.open(action(), now).unwrap();
        }
        let run_action = forms.take(
            &action().run,
            RunActionKind::Land,
            &body(&first, &digits()),
            now,
        );
        assert_eq!(run_action, Err(FormRefusal::Token));
    }
}
