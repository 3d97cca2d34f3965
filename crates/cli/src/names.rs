//! Names on the command line that are written to files and receipts, and so must not contain a secret.

use std::error::Error;
use std::str::FromStr;

use crucible_secrets::free_of_secrets;
use crucible_spec::SpecId;

/// Parses the id of a spec.
pub(crate) fn spec_id(text: &str) -> Result<SpecId, Box<dyn Error + Send + Sync>> {
    parse_public_name("the id of the spec", text)
}

/// Parses the name of a spec of any format, or the path of its folder.
pub(crate) fn spec_name(text: &str) -> Result<String, Box<dyn Error + Send + Sync>> {
    free_of_secrets("the name of the spec", text)?;
    Ok(text.to_owned())
}

/// Parses a name that is written to files and receipts, and so must not contain a secret.
pub(crate) fn parse_public_name<T>(
    what: &'static str,
    text: &str,
) -> Result<T, Box<dyn Error + Send + Sync>>
where
    T: FromStr<Err: Error + Send + Sync + 'static>,
{
    free_of_secrets(what, text)?;
    Ok(text.parse::<T>()?)
}
