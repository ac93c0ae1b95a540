//! Killed again and again, in every kind of step.

use std::collections::BTreeMap;
use std::path::Path;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::Value;
use workflow_runtime::TerminalStatus;

use super::corpus::{Corpus, own_documents};
use super::program::{Running, contents, finish, is_step, run, total};

const SEED: u64 = 20_260_611;
const LARGE: &str = "enter a large part";

/// Kills so far, and those that hit unfinished work by the stage of the step that was about to commit.
struct Killer {
    chance: StdRng,
    kills: usize,
    hits: BTreeMap<&'static str, usize>,
    reused: u64,
}

impl Killer {
    /// Starts the command, and kills it once so many steps of the stage are about to commit; once per stage given.
    /// [`LARGE`] stands for steps that enter a large part, whose findings are in the memo by then.
    fn kill_at(&mut self, store: &Path, args: &[&str], stages: &[&'static str]) {
        for &stage in stages {
            let is_hit = |line: &Value| match stage {
                LARGE => is_step(line, "enter") && line["path"].as_str().unwrap().contains("/long/"),
                stage => is_step(line, stage),
            };
            let mut left = self.chance.random_range(1..4);
            let mut running = Running::start(store, args);
            let was_hit = running.read_until(|line| {
                self.reused += u64::from(line["event"] == "reused");
                left -= usize::from(is_hit(line));
                left == 0
            });
            running.kill();
            self.kills += 1;
            *self.hits.entry(stage).or_default() += usize::from(was_hit);
        }
    }
}

#[tokio::test]
async fn a_pipeline_killed_again_and_again_ends_as_if_nothing_had_happened() {
    let corpus = Corpus::new();
    let (killed, undisturbed) = (corpus.store("killed"), corpus.store("undisturbed"));
    let mut killer = Killer { chance: StdRng::seed_from_u64(SEED), kills: 0, hits: BTreeMap::new(), reused: 0 };
    let (folder, own) = (corpus.folder(), own_documents());
    let ingest = ["ingest", "--concurrency", "4", folder.to_str().unwrap(), own.to_str().unwrap()];
    let words = folder.join("words");
    let forget = ["forget", "--concurrency", "1", words.to_str().unwrap()];

    let mut resumed = 0;
    for (version, stages) in [
        (1, ["read", LARGE, "publish", "enter", "clean-up", LARGE, "publish", "read", LARGE, "clean-up"]),
        (2, ["read", "clean-up", LARGE, "clean-up", "publish", "enter", "clean-up", "clean-up", LARGE, "publish"]),
    ] {
        corpus.write_all(version);
        killer.kill_at(&killed, &ingest, &stages);
        let lines = finish(&killed, &ingest);
        killer.reused += total(&lines, "parts_reused");
        resumed += total(&lines, "resumed");
        let lines = finish(&undisturbed, &ingest);
        assert_eq!((total(&lines, "resumed"), total(&lines, "parts_reused")), (0, 0));
    }
    killer.kill_at(&killed, &forget, &["withdraw", "clean-up", "clean-up", "withdraw"]);
    // When the last kill found all of them forgotten, there is nothing left to forget.
    let left = run(&killed, &forget);
    assert!(matches!(left.status.code(), Some(0 | 1)), "{left:?}");
    finish(&undisturbed, &forget);

    let hits = &killer.hits;
    assert!(killer.kills >= 20, "{}", killer.kills);
    assert!(hits.values().sum::<usize>() >= 15, "{hits:?}");
    assert!(hits.len() == 6 && hits.values().all(|&hits| hits > 0), "{hits:?}");
    assert!(resumed > 0 && killer.reused > 0, "{resumed} runs resumed, {} parts reused", killer.reused);
    check_same(&killed, &undisturbed).await;
}

async fn check_same(killed: &Path, undisturbed: &Path) {
    let (found, expected) = (contents(killed).await, contents(undisturbed).await);
    assert!(expected.ends.len() >= 60, "{}", expected.ends.len());
    assert!(expected.ends.iter().all(|end| end.status == TerminalStatus::Succeeded), "{:?}", expected.ends);
    let differing: Vec<_> = expected.kv.iter().filter(|(key, value)| found.kv.get(*key) != Some(*value)).collect();
    assert!(differing.is_empty(), "missing or other: {differing:?}");
    assert_eq!(found, expected);
}
