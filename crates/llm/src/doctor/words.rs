//! What was found, in words.

use std::path::Path;

use crucible_model::one_line;

use super::{Diagnosis, KeyCheck, KeyState, KeyWanted, ProgramCheck, ProgramState, ProviderCheck};

impl Diagnosis {
    /// The places where missing programs were looked for: a directory for a name, and a path as it is.
    #[must_use]
    pub fn searched(&self) -> Vec<String> {
        let clients = self
            .providers
            .iter()
            .filter_map(|check| check.program.as_ref());
        let mut places: Vec<String> = Vec::new();
        for check in self.programs.iter().chain(clients) {
            for file in &check.searched {
                let directory = Path::new(file).parent().and_then(Path::to_str);
                let place = one_line(
                    directory
                        .filter(|_| !check.name.contains('/'))
                        .unwrap_or(file),
                );
                if !places.contains(&place) {
                    places.push(place);
                }
            }
        }
        places
    }
}

impl ProviderCheck {
    /// The program, address or recording that it is reached by.
    #[must_use]
    pub fn place(&self) -> String {
        let program = self
            .program
            .as_ref()
            .map(|program| format!("{} {}", program.found(), program.version_words()));
        let named = program
            .as_ref()
            .or(self.base_url.as_ref())
            .or(self.recording.as_ref());
        named.map_or("-", |place| place.trim_end()).to_owned()
    }

    /// The state of its key.
    #[must_use]
    pub fn key_words(&self) -> String {
        let Some(KeyCheck {
            variable,
            state,
            wanted,
        }) = &self.key
        else {
            return "-".to_owned();
        };
        let state = match state {
            KeyState::Set => "set",
            KeyState::Empty => "empty",
            KeyState::NotText => "not text",
            KeyState::Unset => "not set",
        };
        match (variable, wanted) {
            (Some(variable), KeyWanted::Required | KeyWanted::Optional) => {
                format!("{variable} {state}")
            }
            (Some(variable), KeyWanted::OwnLogin) => format!("own login ({variable} {state})"),
            (None, KeyWanted::OwnLogin) => "own login".to_owned(),
            (None, KeyWanted::Required) => "no variable named".to_owned(),
            (None, KeyWanted::Optional) => "none wanted".to_owned(),
        }
    }
}

impl ProgramCheck {
    /// Its path, or that it was not found.
    #[must_use]
    pub fn found(&self) -> String {
        match (self.state, &self.path) {
            (ProgramState::Missing, _) | (_, None) => "not found".to_owned(),
            (ProgramState::Unusable | ProgramState::Found, Some(path)) => path.clone(),
        }
    }

    /// Its version, as far as it is known.
    #[must_use]
    pub fn version_words(&self) -> String {
        let known = self.version.as_ref().or(self.says.as_ref());
        match (known, self.state) {
            (Some(known), _) => known.clone(),
            (None, ProgramState::Missing) => String::new(),
            (None, ProgramState::Found | ProgramState::Unusable) => "(not reported)".to_owned(),
        }
    }
}
