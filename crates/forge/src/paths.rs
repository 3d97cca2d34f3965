//! The paths of a skill's files: all of them follow from the package and the skill's name.

use std::fmt;
use std::str::FromStr;

use crucible_model::{RepoPath, RepoPathError};
use serde::{Deserialize, Serialize};

use crate::name::{SkillName, SkillNameError};

/// The Python package that holds the skills, such as `skillset`: of the form of a skill's name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PackageName(SkillName);

impl PackageName {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl FromStr for PackageName {
    type Err = SkillNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

impl fmt::Display for PackageName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The places of one skill, relative to the project's top.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillPaths {
    /// The module: `src/<package>/skills/<name>.py`.
    pub skill: RepoPath,
    /// Its test: `tests/test_skill_<name>.py`.
    pub test: RepoPath,
    /// The module as Python imports it: `<package>.skills.<name>`.
    pub module: String,
    /// The class in it.
    pub class: String,
    /// The module of the base class: `src/<package>/skills/base.py`.
    pub base: RepoPath,
}

impl SkillPaths {
    /// The places of a skill of this package.
    ///
    /// # Errors
    ///
    /// Never in practice: both names are plain path components.
    pub fn new(package: &PackageName, name: &SkillName) -> Result<Self, RepoPathError> {
        Ok(Self {
            skill: format!("src/{package}/skills/{name}.py").parse()?,
            test: format!("tests/test_skill_{name}.py").parse()?,
            module: format!("{package}.skills.{name}"),
            class: name.class(),
            base: format!("src/{package}/skills/base.py").parse()?,
        })
    }

    /// The two files that a build may make, and has to.
    #[must_use]
    pub fn files(&self) -> [&RepoPath; 2] {
        [&self.skill, &self.test]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_follows_from_the_name() {
        let paths =
            SkillPaths::new(&"skillset".parse().unwrap(), &"word_count".parse().unwrap()).unwrap();
        assert_eq!(paths.skill.as_str(), "src/skillset/skills/word_count.py");
        assert_eq!(paths.test.as_str(), "tests/test_skill_word_count.py");
        assert_eq!(paths.module, "skillset.skills.word_count");
        assert_eq!(paths.class, "WordCountSkill");
        assert_eq!(paths.base.as_str(), "src/skillset/skills/base.py");
    }
}
