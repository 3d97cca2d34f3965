//! Suggests existing names for a path that does not exist.

use crucible_model::{MAX_NAMES, MAX_SUGGESTIONS, RepoPath, nearest, short_line};

use super::read::Project;

/// The error that `path` does not exist, with the content of its nearest existing directory.
pub(super) fn what_is_near(project: &Project, path: &RepoPath) -> String {
    let mut directory = String::new();
    let mut missing = path.as_str();
    for segment in path.segments() {
        let next = if directory.is_empty() {
            segment.to_owned()
        } else {
            format!("{directory}/{segment}")
        };
        let is_there = next
            .parse::<RepoPath>()
            .is_ok_and(|next| project.place(&next).is_ok_and(|place| place.is_dir()));
        if !is_there {
            missing = segment;
            break;
        }
        directory = next;
    }
    let place = project.root().join(&directory);
    let mut names: Vec<String> = std::fs::read_dir(place)
        .into_iter()
        .flatten()
        .take(MAX_NAMES)
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| !crucible_secrets::is_secret_file(name) && name.parse::<RepoPath>().is_ok())
        .collect();
    names.sort_unstable();
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    let near = nearest(missing, &all);
    let (listed_names, how): (Vec<&str>, &str) = if near.is_empty() {
        (all.iter().take(MAX_SUGGESTIONS).copied().collect(), "holds")
    } else {
        (near, "has")
    };
    let lines: Vec<String> = listed_names
        .iter()
        .map(|name| short_line(name, 60))
        .collect();
    let whose = if directory.is_empty() {
        "the project".to_owned()
    } else {
        format!("{}/", short_line(&directory, 100))
    };
    if lines.is_empty() {
        return format!(
            "there is no such file, and {whose} is empty; name an existing file, relative to the project's directory"
        );
    }
    let more = if listed_names.len() < all.len() && how == "holds" {
        ", …"
    } else {
        ""
    };
    format!(
        "there is no such file; {whose} {how} {}{more}; name an existing file, relative to the project's directory",
        lines.join(", ")
    )
}
