//! The folder of installed tools: one run installs at a time.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use crate::error::TaskError;
use crate::root::Root;

/// Waits until no other run installs anything; until the value is dropped, none begins to.
pub(super) fn alone(root: &Root) -> Result<File, TaskError> {
    let folder = root.tools();
    fs::create_dir_all(&folder).map_err(TaskError::io("create", &folder))?;
    let path = folder.join("lock");
    let file = File::create(&path).map_err(TaskError::io("create", &path))?;
    file.lock().map_err(TaskError::io("lock", &path))?;
    Ok(file)
}

/// Removes a folder with all it holds; one that is not there is removed already.
pub(super) fn clear(folder: &Path) -> Result<(), TaskError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(TaskError::io("clear", folder)(error))
        }
        _ => Ok(()),
    }
}
