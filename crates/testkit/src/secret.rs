//! A secret that is none.

/// A text in the format of a GitHub token that nobody was given. It is put together when it is asked for, so that no scanner
/// takes the file of a test for a leak.
#[must_use]
pub fn made_up_token() -> String {
    ["ghp", "_", "a1B2c3D4e5F6a1B2c3D4e5F6a1B2c3D4e5F6"].concat()
}
