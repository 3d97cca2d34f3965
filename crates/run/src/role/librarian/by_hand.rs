//! A pack made by a person. It is checked by building the same one: the person says which requested files are
//! shown, and code reads them. It therefore contains nothing that the librarian would not show, verbatim from
//! the repository.

use std::path::Path;

use crucible_model::{Code, Finding, Untrusted, Verdict, unfenced};
use crucible_pack::{ContextPack, FileRequest, Omitted};

use super::pack_context;
use crate::contract::ContextSettings;

const UNREADABLE: Code = Code::new("run-pack-unreadable");
const DIFFERS: Code = Code::new("run-pack-differs");
const INCOMPLETE: Code = Code::new("run-pack-incomplete");

/// Parses the pack of a person for `request`, of the work tree at `top`.
///
/// # Errors
///
/// The verdict names each file that must not be shown, or not in this way, and each missing file.
pub(crate) fn parse_manual_pack(
    answer: &Untrusted,
    top: &Path,
    slug: &str,
    settings: &ContextSettings,
    request: &FileRequest,
) -> Result<ContextPack, Verdict> {
    let unreadable =
        |why: String| Verdict::new(vec![Finding::error(UNREADABLE, "the context pack", why)]);
    let given_context_pack = ContextPack::parse(unfenced(answer.as_str()).as_bytes())
        .map_err(|error| unreadable(error.to_string()))?;
    let is_shown = |path: &str| {
        given_context_pack
            .files
            .iter()
            .any(|file| file.path == path)
    };
    let (shown, left): (Vec<_>, Vec<_>) = request
        .needs
        .iter()
        .cloned()
        .partition(|need| is_shown(&need.path));
    let mut own = pack_context(
        top,
        slug,
        settings,
        &FileRequest {
            needs: shown,
            ..request.clone()
        },
    )
    .map_err(|error| unreadable(error.to_string()))?;
    let mut verdict = Verdict::default();
    for file in &given_context_pack.files {
        let same = own
            .files
            .iter()
            .find(|own| own.path == file.path && own.ranges == file.ranges);
        let hint = match same {
            Some(own) if own.content == file.content && own.truncated == file.truncated => continue,
            Some(_) => "The file is shown word for word, as much of it as the budget lets in.".to_owned(),
            None => match own.omitted.iter().find(|omitted| omitted.path == file.path) {
                Some(omitted) => format!("It may not be shown: {}.", omitted.reason.as_str()),
                None => "Show what artifacts/file_request.json asks for, with its lines, and nothing else."
                    .to_owned(),
            },
        };
        verdict.push(Finding::error(DIFFERS, &file.path, hint));
    }
    for file in &own.files {
        if !given_context_pack.files.iter().any(|given_packed_file| {
            given_packed_file.path == file.path && given_packed_file.ranges == file.ranges
        }) {
            let hint = "This belongs into the pack: the documents that every pack begins with, and all lines of a file that is shown.";
            verdict.push(Finding::error(INCOMPLETE, &file.path, hint));
        }
    }
    for need in left {
        match given_context_pack
            .omitted
            .iter()
            .find(|omitted| omitted.path == need.path)
        {
            Some(omitted) => own.omitted.push(Omitted {
                path: need.path,
                reason: omitted.reason,
            }),
            None => {
                let hint = "It was asked for: show it, or list it in `omitted` with a reason.";
                verdict.push(Finding::error(INCOMPLETE, &need.path, hint));
            }
        }
    }
    if verdict.passes() {
        Ok(own)
    } else {
        Err(verdict)
    }
}

#[cfg(test)]
mod tests {
    use crucible_pack::OmittedReason;
    use crucible_testkit::RepoBuilder;
    use serde_json::json;

    use super::*;

    fn request(paths: &[&str]) -> FileRequest {
        let needs: Vec<_> = paths
            .iter()
            .map(|path| json!({ "path": path, "mode": "full" }))
            .collect();
        let text = json!({
            "schema_version": "ctcp-file-request-v1", "goal": "g", "needs": needs, "reason": "r",
            "budget": { "max_files": 5, "max_total_bytes": 4000 },
        });
        FileRequest::parse(text.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn pack_by_hand_is_checked_like_local() {
        let repo = RepoBuilder::new()
            .file("src/a.py", "a = 1\n")
            .file("src/b.py", "b = 2\n")
            .file("src/c.py", "c = 3\n")
            .file(".env", "KEY=1\n")
            .build();
        let settings = ContextSettings::default();
        let request_file = request(&["src/a.py", "src/b.py", ".env"]);
        let read = |pack: &ContextPack| {
            let text = String::from_utf8(pack.to_bytes().unwrap()).unwrap();
            parse_manual_pack(
                &Untrusted::new(text),
                repo.path(),
                "slug",
                &settings,
                &request_file,
            )
        };
        let codes = |pack: &ContextPack| {
            let verdict = read(pack).unwrap_err();
            verdict
                .findings()
                .iter()
                .map(|found| format!("{} {}", found.code, found.subject))
                .collect::<Vec<_>>()
        };
        let local = pack_context(repo.path(), "slug", &settings, &request_file).unwrap();
        assert_eq!(read(&local).unwrap().files, local.files);

        // A person may show less, and says why.
        let mut less = local.clone();
        less.files.retain(|file| file.path != "src/b.py");
        assert_eq!(codes(&less), ["run-pack-incomplete src/b.py"]);
        less.omitted.push(Omitted {
            path: "src/b.py".to_owned(),
            reason: OmittedReason::Irrelevant,
        });
        let context_pack = read(&less).unwrap();
        assert_eq!(context_pack.files, less.files);
        assert!(
            context_pack
                .omitted
                .iter()
                .any(|omitted| omitted.path == "src/b.py")
        );

        // Nothing is invented, summed up, added or let out.
        let mut words = local.clone();
        words.files[0].content = "a = 1  # in short\n".to_owned();
        assert_eq!(codes(&words), ["run-pack-differs src/a.py"]);
        for path in ["src/c.py", ".env", "../outside", "src/none.py"] {
            let mut more = local.clone();
            let mut file = local.files[0].clone();
            file.path = path.to_owned();
            more.files.push(file);
            assert!(
                codes(&more).contains(&format!("run-pack-differs {path}")),
                "{path}"
            );
        }
        let prose = parse_manual_pack(
            &Untrusted::new("Here it is."),
            repo.path(),
            "slug",
            &settings,
            &request_file,
        );
        assert_eq!(prose.unwrap_err().findings()[0].code, UNREADABLE);
    }
}
