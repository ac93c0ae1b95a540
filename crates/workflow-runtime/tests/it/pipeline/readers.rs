//! What others see and do while an ingest is at work.

use std::collections::BTreeMap;
use std::path::Path;

use rand::SeedableRng;
use rand::rngs::StdRng;
use serde_json::Value;

use super::corpus::{Corpus, prose};
use super::program::{Running, error, hits, is_step, lines, run};

const FILES: u64 = 6;

/// Files of two parts and several chunks, each with a marker in every line but nowhere in the other version; gives how
/// often it occurs, by path.
fn write_marked(corpus: &Corpus, marker: &str, seed: u64) -> BTreeMap<String, u64> {
    let write = |number| {
        let text = prose(&mut StdRng::seed_from_u64(seed + number), 40_000, 1_200);
        let marked = text.replace('\n', &format!(" {marker}\n"));
        let count = marked.lines().count() as u64;
        (corpus.write(&format!("{number}.txt"), marked), count)
    };
    (0..FILES).map(write).collect()
}

/// Queries until the ingest has ended, and gives how many queries there were.
fn query_meanwhile(mut running: Running, store: &Path, mut check: impl FnMut(&BTreeMap<String, u64>)) -> usize {
    let mut queries = 0;
    running.read_until(|line| is_step(line, "read"));
    let ended = std::thread::spawn(move || running.finish());
    while !ended.is_finished() {
        let output = run(store, &["query", "lanternfish"]);
        assert!(matches!(output.status.code(), Some(0 | 1)), "{output:?}");
        check(&hits(&output));
        queries += 1;
    }
    let output = ended.join().unwrap();
    assert!(output.status.success(), "{output:?}");
    queries
}

#[test]
fn queries_beside_an_ingest_show_whole_documents_only() {
    let corpus = Corpus::new();
    let (folder, store) = (corpus.folder(), corpus.store("store"));
    let args = ["ingest", "--concurrency", "2", folder.to_str().unwrap()];

    let first = write_marked(&corpus, "lanternfish", 1);
    let queries = query_meanwhile(Running::start(&store, &args), &store, |hits| {
        for (path, count) in hits {
            assert_eq!(count, &first[path], "{path}");
        }
    });
    assert!(queries > 0, "no query was beside the ingest");

    // Now every document is always there, in one version or the other.
    let second = write_marked(&corpus, "lanternfish and lanternfish", 100);
    let queries = query_meanwhile(Running::start(&store, &args), &store, |hits| {
        assert_eq!(hits.len() as u64, FILES, "{hits:?}");
        for (path, &count) in hits {
            assert!(count == first[path] || count == 2 * second[path], "{count} in {path}");
        }
    });
    assert!(queries > 0, "no query was beside the ingest");
    let hits = hits(&run(&store, &["query", "lanternfish"]));
    assert_eq!(hits, second.into_iter().map(|(path, count)| (path, 2 * count)).collect());
}

#[test]
fn show_beside_an_ingest_tells_how_far_a_run_is() {
    let corpus = Corpus::new();
    let store = corpus.store("store");
    write_marked(&corpus, "lanternfish", 1);
    let folder = corpus.folder();
    let path = folder.join("0.txt");
    let show = ["show", path.to_str().unwrap()];
    let mut running = Running::start(&store, &["ingest", "--concurrency", "1", folder.to_str().unwrap()]);
    // A step's line comes before its commit; the reader sees what was committed before.
    let mut steps = 0;
    running.read_until(|line| {
        steps += u64::from(line["event"] == "step" && line["path"].as_str().unwrap().ends_with("0.txt"));
        steps == 3
    });
    let shown = &lines(&run(&store, &show))[0];
    let stages = |shown: &Value| -> Vec<String> {
        let steps = shown["steps"].as_array().unwrap();
        steps.iter().map(|step| step["stage"].as_str().unwrap().to_owned()).collect()
    };
    assert!(stages(shown).starts_with(&["read".to_owned(), "enter".to_owned()]), "{shown}");
    assert!(running.finish().status.success());

    let shown = &lines(&run(&store, &show))[0];
    assert_eq!((&shown["run"], &shown["document"]["generation"]), (&"succeeded".into(), &1.into()), "{shown}");
    let stages = stages(shown);
    assert_eq!(stages[stages.len() - 2..], ["publish", "clean-up"]);
}

#[test]
fn a_second_writer_is_told_who_holds_the_store() {
    let corpus = Corpus::new();
    let (folder, store) = (corpus.folder(), corpus.store("store"));
    write_marked(&corpus, "lanternfish", 1);
    let mut running = Running::start(&store, &["ingest", folder.to_str().unwrap()]);
    assert!(running.read_until(|line| is_step(line, "read")));
    for args in [["ingest", folder.to_str().unwrap()], ["forget", folder.to_str().unwrap()]] {
        let (code, line) = error(&run(&store, &args));
        let holder = format!("is in use by process {} (document_pipeline)", running.id());
        assert!(code == 3 && line.contains(&holder), "{code}: {line}");
    }
    assert!(running.finish().status.success());
}
