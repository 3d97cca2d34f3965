//! Randomness from the kernel, for names that must not be guessed or met twice.

use std::io::Read;
use std::path::Path;

use crate::fs::FsError;

/// Thirty-two hexadecimal digits from the kernel.
///
/// # Errors
///
/// Fails when the kernel's random device cannot be read.
pub fn token() -> Result<String, FsError> {
    let path = Path::new("/dev/urandom");
    let mut bytes = [0u8; 16];
    std::fs::File::open(path)
        .and_then(|mut device| device.read_exact(&mut bytes))
        .map_err(|source| FsError::io("read", path, source))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
