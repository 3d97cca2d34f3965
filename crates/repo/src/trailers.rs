//! The trailers of commits: `Key: value` lines at the end of a message, as git itself reads them.

use crate::error::RepoError;
use crate::git::{Call, Git};

impl Git {
    /// Returns the values of a trailer in the history of `HEAD`, newest first; `key` has only letters and
    /// `-`.
    ///
    /// # Errors
    ///
    /// Fails when git fails, or when the values exceed the output limit of a call.
    pub async fn trailers(&self, key: &'static str) -> Result<Vec<String>, RepoError> {
        let words = [
            "log".to_owned(),
            "-z".to_owned(),
            format!("--grep=^{key}: "),
            format!("--format=%(trailers:key={key},valueonly)"),
            "HEAD".to_owned(),
        ];
        let output = self.run_ok(Call::new(words)).await?;
        let values = output
            .records()
            .flat_map(|record| record.split(|byte| *byte == b'\n'));
        let texts = values.map(|value| String::from_utf8_lossy(value.trim_ascii()).into_owned());
        Ok(texts.filter(|text| !text.is_empty()).collect())
    }
}
