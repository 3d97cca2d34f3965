//! A download: the bytes go to a new file while they come, and the file is removed unless all of them are there.

use std::path::Path;

use crucible_host::fs::{create_new, read_prefix, remove_file};
use crucible_model::ByteLimit;
use crucible_sandbox::Extent;

use super::error::{GhError, LimitReset};
use super::request::GhRequest;
use super::response::{error_from_text, exit_code, no_response_error, short_text, status_of};
use super::{Gh, response};

/// How much of a refusal is read for GitHub's words.
const MAX_REFUSAL: ByteLimit = ByteLimit(64 << 10);

/// See [`Gh::download`].
pub(super) async fn download(
    gh: &Gh,
    request: &GhRequest,
    to: &Path,
    limit: ByteLimit,
) -> Result<u64, GhError> {
    let file = create_new(to).map_err(|error| GhError::NotRun {
        message: error.to_string(),
    })?;
    let unfinished = Unfinished { path: Some(to) };
    let completed = gh.run(gh.fetch(request, file, limit)?).await?;
    let stderr = short_text(&completed.stderr.text());
    let what = request.path();
    let code = exit_code(completed.end, what, limit, gh.deadlines.download, &stderr)?;
    let total = completed.stdout.total;
    if code == 0 && completed.stdout.extent == Extent::Whole && total > 0 {
        unfinished.keep();
        return Ok(total);
    }
    if completed.stdout.extent == Extent::Cut {
        return Err(GhError::TooLarge {
            what: what.to_owned(),
            limit: limit.0,
        });
    }
    let Some(status) = status_of(&completed.stderr.text()) else {
        return Err(match total {
            0 => no_response_error(code, what, stderr),
            _ => GhError::Unreadable {
                what: what.to_owned(),
                why: format!("it was cut off ({stderr})"),
            },
        });
    };
    let body = read_prefix(to, MAX_REFUSAL)
        .map(|prefix| prefix.bytes)
        .unwrap_or_default();
    match error_from_text(status, &body, what) {
        GhError::RateLimited(_) => Err(GhError::RateLimited(reset(gh).await)),
        other => Err(other),
    }
}

/// Returns when the rate limit ends. A download has no headers, so GitHub is asked, which is free. Unknown if
/// that fails, too.
async fn reset(gh: &Gh) -> LimitReset {
    match gh.get(&GhRequest::at("rate_limit")).await {
        Ok(answer) => response::exhausted_until(&answer),
        Err(GhError::RateLimited(reset)) => reset,
        Err(_) => LimitReset::default(),
    }
}

/// A file that is removed unless kept, also if the future is dropped.
struct Unfinished<'a> {
    path: Option<&'a Path>,
}

impl Unfinished<'_> {
    fn keep(mut self) {
        self.path = None;
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if let Some(path) = self.path {
            // A file that cannot be removed is in the caller's directory, which is removed as a whole.
            let _ = remove_file(path);
        }
    }
}
