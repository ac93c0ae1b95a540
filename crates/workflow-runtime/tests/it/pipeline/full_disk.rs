//! A disk on which there is no more room. A limit on the size of files stands for it: the store meets the same refusal
//! in the same places.

use std::process::Command;

use rand::SeedableRng;
use rand::rngs::StdRng;

use super::corpus::{Corpus, prose};
use super::program::{command, error, finish, ingest, total};

/// In blocks of 512 bytes, or of 1,024 in some shells. What the store writes at its opening is smaller.
const MAX_FILE_BLOCKS: u32 = 48;

/// `command` in a process whose files may not grow beyond the limit.
fn limited(command: &Command) -> Command {
    let mut limited = Command::new("sh");
    // Without the trap, the first write too many would kill the process.
    limited.args(["-c", &format!("trap '' XFSZ; ulimit -f {MAX_FILE_BLOCKS}; exec \"$@\""), "sh"]);
    limited.arg(command.get_program()).args(command.get_args());
    limited
}

#[test]
fn a_full_disk_ends_an_ingest_with_one_line_and_the_next_one_goes_on() {
    let corpus = Corpus::new();
    let (folder, store) = (corpus.folder(), corpus.store("store"));
    // The store is there before the disk is full.
    let first = corpus.write("first.txt", "lanternfish");
    finish(&store, &["ingest", &first]);
    corpus.write("second.txt", prose(&mut StdRng::seed_from_u64(1), 60_000, 50_000));

    let output = limited(&command(&store, &["ingest", folder.to_str().unwrap()])).output().unwrap();
    let (code, line) = error(&output);
    let store_shown = std::fs::canonicalize(&store).unwrap();
    let expected =
        format!("error: {} cannot grow: the disk, or your share of it, is full; make room", store_shown.display());
    assert!(code == 3 && line.starts_with(&expected), "{code}: {line}");

    let lines = ingest(&store, &folder);
    assert_eq!((total(&lines, "files"), total(&lines, "failed")), (2, 0));
}
