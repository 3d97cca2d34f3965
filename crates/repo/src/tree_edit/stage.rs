//! Writes the new contents to temporary files beside their targets.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{Gid, Mode, OFlags, Uid};

use super::edit_target::{Target, errno_of};
use super::journal::Journal;
use super::{EditObstacle, EditStep, NewFile, TreeEditError};
use crate::beneath::Root;

/// The permission bits of a new file.
const PLAIN: u32 = 0o644;
/// The permission bits of a new executable file.
const EXECUTABLE: u32 = 0o755;

/// Creates missing directories and writes each new file, flushed, in its final mode. Returns their directories.
pub(super) fn stage(
    root: &Root,
    targets: &[Target<'_>],
    journal: &Journal,
    watch: &mut dyn FnMut(EditStep),
) -> Result<Vec<Root>, TreeEditError> {
    for new_path in &journal.made {
        root.make_dir(new_path.as_ref())
            .map_err(|errno| root.fail("make", new_path.as_ref(), errno))?;
    }
    let mut dirs = Vec::new();
    for (index, (target, entry)) in targets.iter().zip(&journal.entries).enumerate() {
        let fail = |errno| root.fail("open", entry.parent(), errno);
        let dir = root.open_directory(entry.parent()).map_err(fail)?;
        if let Some(content) = target.after {
            write(&dir, target, content, journal, index)?;
        }
        dirs.push(dir);
        watch(EditStep::Staged(index));
    }
    for (dir, entry) in dirs.iter().zip(&journal.entries) {
        dir.sync()
            .map_err(|errno| dir.fail("flush", entry.name(), errno))?;
    }
    Ok(dirs)
}

/// Writes the new content of one file again. Its directory must exist.
pub(super) fn stage_one(
    root: &Root,
    target: &Target<'_>,
    journal: &Journal,
    index: usize,
) -> Result<(), TreeEditError> {
    let parent = Path::new(target.path.as_str())
        .parent()
        .unwrap_or(Path::new(""));
    let dir = root
        .open_directory(parent)
        .map_err(|errno| root.fail("open", parent, errno))?;
    if let Some(content) = target.after {
        write(&dir, target, content, journal, index)?;
    }
    dir.sync()
        .map_err(|errno| root.fail("flush", parent, errno).into())
}

fn write(
    dir: &Root,
    target: &Target<'_>,
    content: &[u8],
    journal: &Journal,
    index: usize,
) -> Result<(), TreeEditError> {
    let spare = journal.names(index).swap_file;
    let fail = |errno| dir.fail("write", &spare, errno);
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
    // Private to this user until complete, because the content may be confidential.
    let fd = dir
        .open_file(&spare, flags, Mode::from_raw_mode(0o600))
        .map_err(fail)?;
    let mut file = File::from(fd);
    file.write_all(content)
        .map_err(|error| fail(errno_of(error)))?;
    let file_metadata = file.metadata().map_err(|error| fail(errno_of(error)))?;
    let mut mode = match target.new_file {
        NewFile::Plain => PLAIN,
        NewFile::Executable => EXECUTABLE,
    };
    if let Some(meta) = &target.meta {
        if (meta.uid(), meta.gid()) != (file_metadata.uid(), file_metadata.gid()) {
            let (owner, group) = (Uid::from_raw(meta.uid()), Gid::from_raw(meta.gid()));
            rustix::fs::fchown(&file, Some(owner), Some(group)).map_err(|_| {
                TreeEditError::Blocked {
                    path: target.path.clone(),
                    why: EditObstacle::OtherOwner,
                }
            })?;
        }
        mode = meta.mode() & 0o777;
    }
    rustix::fs::fchmod(&file, Mode::from_raw_mode(mode)).map_err(fail)?;
    rustix::fs::fsync(&file).map_err(fail)?;
    Ok(())
}
