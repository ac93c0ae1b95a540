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
/// the thread runs in the time that nobody else wants; with little else to do on the machine, that is all of it.
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
    use thread_priority::{
        NormalThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy, set_thread_priority_and_policy,
        thread_native_id,
    };
    let idle = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
    // Where that is not allowed, reading costs the writer a little time.
    let _ = set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, idle);
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
        use thread_priority::{NormalThreadSchedulePolicy, ThreadSchedulePolicy, thread_schedule_policy};

        fn policies_beside(store: &std::path::Path) -> [ThreadSchedulePolicy; 2] {
            let runtime = super::reading(store).unwrap();
            let opens_files = runtime.block_on(runtime.spawn_blocking(|| thread_schedule_policy().unwrap()));
            [thread_schedule_policy().unwrap(), opens_files.unwrap()]
        }

        let store = tempfile::tempdir().unwrap();
        let path = store.path().to_owned();
        let [idle, normal] =
            [NormalThreadSchedulePolicy::Idle, NormalThreadSchedulePolicy::Other].map(ThreadSchedulePolicy::Normal);
        assert_eq!(policies_beside(&path), [normal, normal]);
        fs::create_dir_all(store.path().join(LOG_FOLDER)).unwrap();
        // A thread of its own: it stays as it is made.
        let beside_writer = std::thread::spawn(move || policies_beside(&path)).join().unwrap();
        assert_eq!(beside_writer, [idle, normal]);
    }
}
