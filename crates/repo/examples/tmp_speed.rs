//! tmp
fn main() {
    let rt = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let env = crucible_host::env::Environment::capture();
    let sb = std::sync::Arc::new(crucible_sandbox::Sandbox::new(None, &env));
    let path = std::env::args().nth(1).unwrap();
    rt.block_on(async {
        let t = std::time::Instant::now();
        let git = crucible_repo::Git::open(sb.clone(), &env, path.as_ref()).await.unwrap();
        println!("open {:?}", t.elapsed());
        for _ in 0..3 { let t = std::time::Instant::now(); git.branch().await.unwrap(); println!("branch {:?}", t.elapsed()); }
        let t = std::time::Instant::now(); let s = git.status().await.unwrap(); println!("status {} {:?}", s.len(), t.elapsed());
        let t = std::time::Instant::now(); let s = git.tracked_files().await.unwrap(); println!("tracked {} {:?}", s.len(), t.elapsed());
        let dest = std::path::Path::new("/dev/shm/snap-speed"); let _ = std::fs::remove_dir_all(dest);
        let t = std::time::Instant::now();
        let o = crucible_repo::SnapshotOptions { untracked: crucible_repo::Untracked::Include, secret: std::sync::Arc::new(|_| None) };
        let r = crucible_repo::snapshot(&git, dest, &o).await.unwrap();
        println!("snapshot {:?} {} {} omitted {} {:?}", r.method, r.files, r.bytes, r.omitted.len(), t.elapsed());
        let t = std::time::Instant::now(); crucible_repo::baseline(sb.clone(), &env, dest).await.unwrap(); println!("baseline {:?}", t.elapsed());
    });
}
