//! Reading beside a process that writes, without taking time from it.

use std::path::Path;
use std::sync::{Arc, Barrier};
use std::time::{Duration, SystemTime};
use std::{fs, io};

use tokio::runtime::{Builder, Runtime};

/// Where the log of a store lies, a new file for every write.
const LOG_FOLDER: &str = "queue/wal";
/// A store whose last write is older is not being written.
const LULL: Duration = Duration::from_secs(2);

/// The threads that read files.
const READERS: usize = 2;
/// They are kept for as long as any command takes.
const KEPT: Duration = Duration::from_secs(24 * 3600);

/// What `store` is read on: one thread, which leaves the others to whoever writes. While the store is being written
/// the thread lets others go first; with little else to do on the machine, that costs nothing.
///
/// # Errors
///
/// No thread can be started.
pub(crate) fn reading(store: &Path) -> io::Result<Runtime> {
    let mut one_thread = Builder::new_current_thread();
    if !is_being_written(store, SystemTime::now()) {
        return one_thread.enable_all().build();
    }
    let runtime = one_thread.enable_all().max_blocking_threads(READERS).thread_keep_alive(KEPT).build()?;
    // A thread starts with the priority of the one that starts it. Those that open files keep theirs: one that is put
    // off while it holds a lock of the file system would hold up the writer.
    let all_started = Arc::new(Barrier::new(READERS + 1));
    for _ in 0..READERS {
        let all_started = Arc::clone(&all_started);
        runtime.spawn_blocking(move || all_started.wait());
    }
    all_started.wait();
    make_way();
    Ok(runtime)
}

fn is_being_written(store: &Path, now: SystemTime) -> bool {
    let changed = fs::metadata(store.join(LOG_FOLDER)).and_then(|log| log.modified());
    // A time ahead of the clock is a recent one.
    changed.is_ok_and(|changed| now.duration_since(changed).unwrap_or_default() < LULL)
}

#[cfg(target_os = "linux")]
fn make_way() {
    // Lowest among the ordinary, not idle: on a machine that is busy for good an answer would never come. Where it is
    // not allowed, reading costs the writer a little time.
    let _ = thread_priority::set_current_thread_priority(thread_priority::ThreadPriority::Min);
}

#[cfg(not(target_os = "linux"))]
fn make_way() {}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::{Duration, SystemTime};

    use super::{LOG_FOLDER, LULL, is_being_written};

    #[test]
    fn a_store_is_being_written_for_a_while_after_each_write() {
        let store = tempfile::tempdir().unwrap();
        assert!(!is_being_written(store.path(), SystemTime::now()));
        let log = store.path().join(LOG_FOLDER);
        fs::create_dir_all(&log).unwrap();
        let written = fs::metadata(&log).unwrap().modified().unwrap();
        assert!(is_being_written(store.path(), written));
        assert!(is_being_written(store.path(), written - Duration::from_secs(60)));
        assert!(!is_being_written(store.path(), written + LULL));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn beside_a_writer_only_the_threads_that_open_files_compete_with_it() {
        /// How nice this thread is to others.
        fn niceness() -> i32 {
            let stat = fs::read_to_string("/proc/thread-self/stat").unwrap();
            let (_, after_name) = stat.rsplit_once(')').unwrap();
            after_name.split_whitespace().nth(16).unwrap().parse().unwrap()
        }

        fn beside(store: &std::path::Path) -> [i32; 2] {
            let runtime = super::reading(store).unwrap();
            let opens_files = runtime.block_on(runtime.spawn_blocking(niceness)).unwrap();
            [niceness(), opens_files]
        }

        let store = tempfile::tempdir().unwrap();
        let path = store.path().to_owned();
        let usual = niceness();
        assert_eq!(beside(&path), [usual, usual]);
        fs::create_dir_all(store.path().join(LOG_FOLDER)).unwrap();
        // A thread of its own: it stays as it is made.
        let beside_writer = std::thread::spawn(move || beside(&path)).join().unwrap();
        assert_eq!(beside_writer, [19, usual]);
    }
}
