//! The folder that holds runs and index: opening it to write or to read.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use workflow_runtime::{Storage, StoreReader, open, open_reader};

use crate::failure::{Failure, is_no_room};

/// What a store keeps its queue in.
const QUEUE_FOLDER: &str = "queue";
/// What a process that writes a store locks.
const LOCK_FILE: &str = "lock";
/// Written and removed to find out whether there is room.
const PROBE_FILE: &str = "space-probe";
const PROBE_BYTES: usize = 1024 * 1024;
const LOOK_AT_DISK: Duration = Duration::from_secs(3);

/// Makes the folder of the store, and gives its canonical path.
///
/// # Errors
///
/// It cannot be made, or holds something else.
pub(crate) fn create(store: &Path) -> Result<PathBuf, Failure> {
    let refuse = |problem: String| Err(Failure::store(store, problem));
    if fs::metadata(store).is_ok_and(|metadata| !metadata.is_dir()) {
        return refuse("is a file; name a folder with --store".to_owned());
    }
    if is_foreign(store) {
        return refuse("holds other files and no index; name a new or empty folder with --store".to_owned());
    }
    match fs::create_dir_all(store).and_then(|()| fs::canonicalize(store)) {
        Ok(store) => Ok(store),
        Err(error) => refuse(format!("cannot be made: {error}")),
    }
}

/// The canonical path of a store that is there.
///
/// # Errors
///
/// There is none.
pub(crate) fn find(store: &Path) -> Result<PathBuf, Failure> {
    let found = fs::canonicalize(store).ok().filter(|found| found.join(QUEUE_FOLDER).is_dir());
    found.ok_or_else(|| Failure::store(store, "is no index; run ingest first, or name another with --store"))
}

/// Opens a store to write.
pub(crate) async fn open_writer(store: &Path) -> anyhow::Result<Storage> {
    Ok(open(&url(store)?).await?)
}

/// Opens a store to read, beside the process that writes it.
pub(crate) async fn open_beside(store: &Path) -> anyhow::Result<StoreReader> {
    Ok(open_reader(&url(store)?).await?)
}

/// Resolves when nothing gets done, as `steps` counts it, because the disk is full: the store waits for room then, and
/// would do so for ever.
pub(crate) async fn until_disk_is_full(store: &Path, steps: impl Fn() -> u64) {
    let mut before = steps();
    loop {
        tokio::time::sleep(LOOK_AT_DISK).await;
        let now = steps();
        if now == before && is_full(&store.join(PROBE_FILE)) {
            return;
        }
        before = now;
    }
}

/// Whether a file of some size cannot be written.
fn is_full(probe: &Path) -> bool {
    let written = fs::write(probe, vec![1; PROBE_BYTES]);
    // It holds nothing; one that stays is written over the next time.
    let _ = fs::remove_file(probe);
    written.is_err_and(|error| is_no_room(error.kind()))
}

/// Whether there is something in the folder, and it is no store: the lock of one that was never opened is nothing.
fn is_foreign(store: &Path) -> bool {
    let Ok(entries) = fs::read_dir(store) else { return false };
    let is_lock = |entry: &fs::DirEntry| entry.file_name() == LOCK_FILE;
    let mut others = entries.flatten().filter(|entry| !is_lock(entry));
    others.next().is_some() && !store.join(QUEUE_FOLDER).is_dir()
}

/// The address of a local folder. It is canonical, so it has one.
fn url(store: &Path) -> anyhow::Result<String> {
    let url = url::Url::from_file_path(store);
    url.map(String::from).map_err(|()| anyhow::anyhow!("{} is not an absolute path", store.display()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{LOCK_FILE, QUEUE_FOLDER, create, find};

    #[test]
    fn a_store_is_made_in_a_new_or_empty_folder_only() {
        let folder = tempfile::tempdir().unwrap();
        create(&folder.path().join("new/deep")).unwrap();
        let empty = folder.path().join("empty");
        fs::create_dir(&empty).unwrap();
        create(&empty).unwrap();
        fs::write(empty.join(LOCK_FILE), "").unwrap();
        create(&empty).unwrap();
        fs::write(empty.join("letter.txt"), "text").unwrap();
        assert!(create(&empty).unwrap_err().to_string().contains("holds other files"));
        assert!(create(&empty.join("letter.txt")).unwrap_err().to_string().contains("is a file"));
        fs::create_dir(empty.join(QUEUE_FOLDER)).unwrap();
        create(&empty).unwrap();
    }

    #[test]
    fn only_a_store_that_is_there_is_found() {
        let folder = tempfile::tempdir().unwrap();
        assert!(find(folder.path()).unwrap_err().to_string().contains("is no index"));
        fs::create_dir(folder.path().join(QUEUE_FOLDER)).unwrap();
        find(folder.path()).unwrap();
    }
}
