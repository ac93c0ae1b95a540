//! A file much larger than what the program holds of it.

use std::fs::{self, File};
use std::io::{BufWriter, Write};

use super::corpus::Corpus;
use super::program::{Running, hits, run};

const LINES: u64 = 600_000;
/// What a process that holds nothing of a file needs, and then some.
const MAX_MEMORY_KIB: u64 = 150 * 1024;

#[test]
fn a_large_file_is_never_in_memory_as_a_whole() {
    let corpus = Corpus::new();
    let store = corpus.store("store");
    let path = corpus.write("large.log", "");
    let mut file = BufWriter::new(File::create(&path).unwrap());
    for number in 0..LINES {
        writeln!(file, "request {} answered by lanternfish", number % 700).unwrap();
    }
    file.into_inner().unwrap().sync_all().unwrap();
    assert!(fs::metadata(&path).unwrap().len() > 20_000_000);

    let folder = corpus.folder();
    let mut running = Running::start(&store, &["ingest", folder.to_str().unwrap()]);
    let (id, mut most) = (running.id(), 0);
    running.read_until(|_| {
        // Where there is no such file, nothing is measured.
        most = most.max(peak_kib(id).unwrap_or(0));
        false
    });
    assert!(running.finish().status.success());
    assert!(most < MAX_MEMORY_KIB, "{most} KiB");
    assert_eq!(hits(&run(&store, &["query", "lanternfish"])), [(path, LINES)].into());
}

/// The most memory that a process has had.
fn peak_kib(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}
