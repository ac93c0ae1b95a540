//! The main job on real files: the example's own program, killed again and again, ends as if nothing had happened.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;

use bytes::Bytes;
use futures::TryStreamExt;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use workflow_runtime::{NoopTerminalHook, RunOutcome, TerminalStatus, open};

use crate::support::{Runner, succeed};

const SEED: u64 = 20_260_611;
const KILLS: usize = 8;
/// The first step after those that read a file and split its text: from here on sections are memoized.
const FIRST_ANALYSIS: u32 = 2;

/// What a store holds at the end.
#[derive(Debug, PartialEq)]
struct Contents {
    /// Everything the application wrote.
    kv: BTreeMap<Bytes, Bytes>,
    /// How the run of each document ended.
    ends: Vec<RunOutcome>,
}

#[tokio::test]
async fn a_pipeline_killed_again_and_again_ends_as_if_nothing_had_happened() {
    let program = program();
    let (killed, undisturbed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());

    let mut chance = StdRng::seed_from_u64(SEED);
    let mut reused = 0;
    for _ in 0..KILLS {
        let lines = ingest(&program, killed.path(), Some(chance.random_range(1..25)));
        assert!(!is_over(&lines), "a kill found nothing to interrupt: {lines:?}");
        reused += sections_reused(&lines);
    }
    let lines = ingest(&program, killed.path(), None);
    reused += sections_reused(&lines);
    assert!(total(&lines, "runs resumed") > 0, "{lines:?}");
    assert!(reused > 0, "no memoized work was met again");

    let lines = ingest(&program, undisturbed.path(), None);
    assert_eq!((total(&lines, "runs resumed"), total(&lines, "sections reused")), (0, 0));
    let files = total(&lines, "runs new");
    assert!(files >= 30, "{files} files are too few");

    let expected = contents(undisturbed.path()).await;
    assert_eq!(expected.ends.len(), files as usize);
    assert!(expected.ends.iter().all(|end| end.status == TerminalStatus::Succeeded), "{:?}", expected.ends);
    let found = contents(killed.path()).await;
    let differing: Vec<_> = expected.kv.iter().filter(|(key, value)| found.kv.get(*key) != Some(*value)).collect();
    assert!(differing.is_empty(), "missing or other: {differing:?}");
    assert_eq!(found, expected);
}

/// The lines that `ingest` prints. With `steps` it is killed once so many steps are done and one of them was an
/// analysis: that step's sections are memoized then, and it has hardly been committed.
fn ingest(program: &Path, store: &Path, steps: Option<usize>) -> Vec<String> {
    let mut child = Command::new(program)
        .args(["ingest", "--verbose", "--concurrency", "16", "--store"])
        .arg(store)
        .args(folders())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = Vec::new();
    let (mut done, mut analysed) = (0, false);
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        if let Some(step) = step_number(&line) {
            done += 1;
            analysed |= step >= FIRST_ANALYSIS;
        }
        lines.push(line);
        if steps.is_some_and(|steps| done >= steps && analysed) {
            child.kill().unwrap();
            break;
        }
    }
    let status = child.wait().unwrap();
    assert_eq!(status.success(), steps.is_none(), "{lines:?}");
    lines
}

/// This repository's own sources and documents.
fn folders() -> impl Iterator<Item = PathBuf> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("this crate has neighbours");
    ["workflow-core", "workflow-effects", "workflow-memo", "../docs"].into_iter().map(|folder| crates.join(folder))
}

/// The number in `step 3 src/lib.rs`.
fn step_number(line: &str) -> Option<u32> {
    line.strip_prefix("step ")?.split(' ').next()?.parse().ok()
}

/// The numbers in lines such as `reused src/lib.rs: 5 sections`.
fn sections_reused(lines: &[String]) -> u64 {
    let number =
        |line: &String| line.strip_prefix("reused ")?.rsplit_once(": ")?.1.split(' ').next()?.parse::<u64>().ok();
    lines.iter().filter_map(number).sum()
}

/// Whether the totals were printed.
fn is_over(lines: &[String]) -> bool {
    lines.iter().any(|line| line.starts_with("seconds "))
}

/// A number of the totals.
fn total(lines: &[String], name: &str) -> u64 {
    let number = |line: &String| line.strip_prefix(name)?.trim().parse().ok();
    lines.iter().find_map(number).unwrap_or_else(|| panic!("no `{name}` in {lines:?}"))
}

/// Reads a store after its last process has ended.
async fn contents(store: &Path) -> Contents {
    let storage = open(&format!("file://{}", store.display())).await.unwrap();
    let kv: BTreeMap<Bytes, Bytes> = storage.kv().scan(b"").try_collect().await.unwrap();
    let runtime = storage.runtime(Runner::sync(succeed), NoopTerminalHook).build().unwrap();
    let mut ends = Vec::new();
    for id in kv.keys().filter_map(|key| key.strip_prefix(b"document/")) {
        let id = std::str::from_utf8(id).unwrap();
        ends.push(runtime.run_end(id).await.unwrap().expect("its document is in the index"));
    }
    drop(runtime);
    storage.close().await.unwrap();
    Contents { kv, ends }
}

/// The example's program, built if it is missing or older than its sources: `cargo test` builds it along with this
/// test, unless it is asked for this test alone.
fn program() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().and_then(Path::parent).expect("tests are built in a folder of their profile");
    let program = profile.join("examples").join(format!("document_pipeline{}", std::env::consts::EXE_SUFFIX));
    if !is_fresh(&program) {
        let name = match profile.file_name().and_then(|name| name.to_str()) {
            Some("debug") | None => "dev",
            Some(name) => name,
        };
        let status = Command::new(env!("CARGO"))
            .args(["build", "--locked", "-p", "workflow-runtime", "--example", "document_pipeline"])
            .args(["--profile", name, "--target-dir"])
            .arg(profile.parent().expect("a profile's folder is inside the target folder"))
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .status()
            .unwrap();
        assert!(status.success(), "the example does not build");
    }
    program
}

/// Whether `program` is as new as the sources that cargo has listed beside it.
fn is_fresh(program: &Path) -> bool {
    let changed = |path: &Path| fs::metadata(path).and_then(|metadata| metadata.modified());
    let Ok(listed) = fs::read_to_string(program.with_extension("d")) else { return false };
    let built = changed(program).unwrap_or(SystemTime::UNIX_EPOCH);
    // A blank inside of a path is escaped; such a path is not found, and cargo decides.
    let mut sources = listed.split_whitespace().skip(1);
    sources.all(|source| changed(Path::new(source)).is_ok_and(|changed| changed <= built))
}
