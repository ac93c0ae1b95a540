//! Files that come, change, go back and go away: the index holds what they hold now, and nothing else.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::corpus::{Corpus, prose, wide};
use super::program::{Running, contents, error, finish, hits, ingest, is_step, lines, run, total};

use rand::SeedableRng;
use rand::rngs::StdRng;

/// The rows of the index below some prefixes, whatever generation wrote them.
async fn index(store: &Path, prefixes: &[&str]) -> BTreeMap<String, Vec<u8>> {
    let rows = contents(store).await.kv.into_iter().filter_map(|(key, value)| {
        let key = String::from_utf8(key.to_vec()).unwrap();
        prefixes.iter().any(|prefix| key.starts_with(prefix)).then_some((key, value.to_vec()))
    });
    // Entries are `…/{generation}/…`; the record names it too and is left out.
    rows.map(|(key, value)| (key.replace("/00000003/", "/00000001/"), value)).collect()
}

fn check_found(store: &Path, word: &str, expected: &[&str]) {
    let output = run(store, &["query", word]);
    assert_eq!(output.status.code(), Some(i32::from(expected.is_empty())), "{output:?}");
    assert_eq!(hits(&output).into_keys().collect::<Vec<_>>(), expected, "{word}");
}

#[tokio::test]
async fn a_file_that_goes_back_to_an_earlier_content_leaves_nothing_of_the_other() {
    let corpus = Corpus::new();
    let (there_and_back, once) = (corpus.store("there-and-back"), corpus.store("once"));
    let (a, b) = (
        format!("lanternfish {}", prose(&mut StdRng::seed_from_u64(1), 3_000, 2_000)),
        format!("anglerfish {}", prose(&mut StdRng::seed_from_u64(2), 4_000, 2_500)),
    );
    for content in [&a, &b, &a] {
        let path = corpus.write("file.txt", content);
        ingest(&there_and_back, &corpus.folder());
        let (there, gone) = if content == &a { ("lanternfish", "anglerfish") } else { ("anglerfish", "lanternfish") };
        check_found(&there_and_back, there, &[&path]);
        check_found(&there_and_back, gone, &[]);
    }
    ingest(&once, &corpus.folder());
    let rows = ["index/", "entered/"];
    assert_eq!(index(&there_and_back, &rows).await, index(&once, &rows).await);
}

#[tokio::test]
async fn unchanged_files_are_skipped_and_files_that_are_gone_are_forgotten() {
    let corpus = Corpus::new();
    let store = corpus.store("store");
    let (kept, touched) = (corpus.write("kept.txt", "lanternfish"), corpus.write("touched.txt", "lanternfish"));
    corpus.write("below/gone.txt", "anglerfish");
    corpus.write("picture", "\0");
    let lines = ingest(&store, &corpus.folder());
    assert_eq!((total(&lines, "indexed"), total(&lines, "skipped")), (3, 1));

    fs::write(&touched, "lanternfish").unwrap();
    let lines = ingest(&store, &corpus.folder());
    assert_eq!((total(&lines, "unchanged"), total(&lines, "skipped"), total(&lines, "indexed")), (4, 0, 0));

    // Only folders that are named are looked at for what is gone.
    corpus.remove("below/gone.txt");
    let lines = finish(&store, &["ingest", &kept]);
    assert_eq!((total(&lines, "files"), total(&lines, "forgotten")), (1, 0));
    let lines = ingest(&store, &corpus.folder());
    assert_eq!(total(&lines, "forgotten"), 1);
    check_found(&store, "anglerfish", &[]);
    check_found(&store, "lanternfish", &[&kept, &touched]);

    finish(&store, &["forget", corpus.folder().to_str().unwrap()]);
    check_found(&store, "lanternfish", &[]);
    assert!(index(&store, &["index/", "entered/", "document/", "visible/"]).await.is_empty());
    let lines = ingest(&store, &corpus.folder());
    assert_eq!(total(&lines, "indexed"), 2);
    check_found(&store, "lanternfish", &[&kept, &touched]);
}

#[test]
fn text_of_every_encoding_is_found() {
    let corpus = Corpus::new();
    let store = corpus.store("store");
    let mut expected = [
        corpus.write("utf-8", "größe"),
        corpus.write("two characters for one letter", "gro\u{308}ße"),
        corpus.write("utf-16", wide("\u{feff}Größe")),
        corpus.write("latin-1", b"GR\xD6\xDFE"),
    ];
    expected.sort();
    corpus.write("none", b"gr\0\xF6\xDFe");
    corpus.write("empty", "");
    ingest(&store, &corpus.folder());
    for word in ["größe", "Gro\u{308}ße"] {
        check_found(&store, word, &expected.each_ref().map(String::as_str));
    }
}

#[test]
fn a_file_that_changes_while_it_is_read_fails_and_is_indexed_the_next_time() {
    let corpus = Corpus::new();
    let store = corpus.store("store");
    // Many parts: when the first one is entered, the last one is not read yet.
    corpus.write("file.txt", "lanternfish swims\n".repeat(300_000));
    let folder = corpus.folder();
    let mut running = Running::start(&store, &["ingest", folder.to_str().unwrap()]);
    assert!(running.read_until(|line| is_step(line, "enter")));
    let path = corpus.write("file.txt", "anglerfish");
    let output = running.finish();
    assert_eq!(error(&output), (1, "error: 1 files failed, see above".to_owned()));
    let lines = lines(&output);
    let failed = lines.iter().find(|line| line["event"] == "failed").unwrap();
    assert_eq!(failed["reason"], "the file changed while it was read");
    check_found(&store, "lanternfish", &[]);

    ingest(&store, &folder);
    check_found(&store, "anglerfish", &[&path]);
    check_found(&store, "lanternfish", &[]);
}

#[test]
fn every_error_is_one_line_that_says_what_to_do() {
    let corpus = Corpus::new();
    let (folder, store) = (corpus.folder(), corpus.store("store"));
    let file = corpus.write("file.txt", "text");
    let check = |store: &Path, args: &[&str], code: i32, part: &str| {
        let (found, line) = error(&run(store, args));
        assert!(found == code && line.contains(part), "{found}: {line}");
    };
    check(&store, &["ingest", "/no/such/folder"], 2, "cannot read /no/such/folder: there is no such file or folder");
    assert!(!store.exists());
    check(&store, &["query", "word"], 3, "is no index; run ingest first");
    check(&store, &["show", &file], 3, "is no index");
    check(&folder, &["ingest", &file], 3, "holds other files and no index");
    check(&folder.join("file.txt"), &["ingest", &file], 3, "is a file");
    check(&store, &["query"], 2, "query needs a word");
    ingest(&store, &folder);
    check(&store, &["query", "absent"], 1, "no document holds absent");
    check(&store, &["show", "absent"], 1, "absent is not in the index");
    check(&store, &["forget", "absent"], 1, "absent is not in the index");

    let manifests = fs::read_dir(store.join("queue/manifest")).unwrap();
    for manifest in manifests {
        fs::write(manifest.unwrap().path(), "text").unwrap();
    }
    check(&store, &["ingest", &file], 3, "if it is damaged");
    check(&store, &["query", "text"], 3, "if it is damaged");
}
