//! An archive as GitHub sends one: a gzip tar whose only top folder is `owner-name-SHORTSHA`, and whose global header
//! carries the commit.

use std::collections::BTreeSet;
use std::io::Write;

/// How long a short commit id is in the name of the top folder.
const SHORT: usize = 7;
const BLOCK: usize = 512;

/// The gzip tar of a repository at a commit, with these files, as GitHub would send it. The same arguments give the same bytes.
#[must_use]
pub fn tarball<P: AsRef<str>, C: AsRef<[u8]>>(
    owner: &str,
    name: &str,
    sha: &str,
    files: impl IntoIterator<Item = (P, C)>,
) -> Vec<u8> {
    tarball_of_mode(0o664, owner, name, sha, files)
}

/// The same with this mode for every file, be it one that no archive of GitHub's has.
#[must_use]
pub fn tarball_of_mode<P: AsRef<str>, C: AsRef<[u8]>>(
    mode: u32,
    owner: &str,
    name: &str,
    sha: &str,
    files: impl IntoIterator<Item = (P, C)>,
) -> Vec<u8> {
    let top = format!("{owner}-{name}-{}", sha.get(..SHORT).unwrap_or(sha));
    let mut tar = Vec::new();
    let comment = format!(" comment={sha}\n");
    // The length of a record counts its own digits: two of them for a commit id.
    let record = format!("{}{comment}", comment.len() + 2);
    entry(
        &mut tar,
        "pax_global_header",
        b'g',
        0o666,
        record.as_bytes(),
    );
    entry(&mut tar, &format!("{top}/"), b'5', 0o775, &[]);
    let mut lines = BTreeSet::new();
    for (path, content) in files {
        let path = path.as_ref();
        for (at, _) in path.match_indices('/') {
            let parent = path.get(..=at).unwrap_or_default();
            if lines.insert(parent.to_owned()) {
                entry(&mut tar, &format!("{top}/{parent}"), b'5', 0o775, &[]);
            }
        }
        entry(
            &mut tar,
            &format!("{top}/{path}"),
            b'0',
            mode,
            content.as_ref(),
        );
    }
    tar.resize(tar.len() + 2 * BLOCK, 0);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&tar).expect("memory takes what is written");
    gzip.finish().expect("memory takes what is written")
}

fn entry(tar: &mut Vec<u8>, path: &str, kind: u8, mode: u32, content: &[u8]) {
    assert!(
        path.len() <= 100,
        "{path:?} is too long for the plain header that this builder writes"
    );
    let mut header = [0_u8; BLOCK];
    let mut put = |at: usize, bytes: &[u8]| {
        let end = at + bytes.len();
        header
            .get_mut(at..end)
            .expect("a field inside the header")
            .copy_from_slice(bytes);
    };
    put(0, path.as_bytes());
    put(100, format!("{mode:07o}").as_bytes());
    put(108, b"0000000");
    put(116, b"0000000");
    put(124, format!("{:011o}", content.len()).as_bytes());
    put(136, format!("{:011o}", 1_700_000_000).as_bytes());
    put(148, b"        ");
    put(156, &[kind]);
    put(257, b"ustar\x0000");
    put(265, b"root");
    put(297, b"root");
    let sum: u32 = header.iter().copied().map(u32::from).sum();
    header
        .get_mut(148..156)
        .expect("a field inside the header")
        .copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    tar.extend_from_slice(&header);
    tar.extend_from_slice(content);
    tar.resize(tar.len().next_multiple_of(BLOCK), 0);
}
