//! The forge crate from outside: its judges on whole skills, and the tests that a skill brings along.

mod judged;
mod skill_policy;
mod tests_of_skills;
