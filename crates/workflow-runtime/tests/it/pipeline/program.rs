//! The example's program as a child process, and what it leaves in its store.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, Output, Stdio};
use std::sync::OnceLock;

use bytes::Bytes;
use futures::TryStreamExt;
use serde_json::Value;
use workflow_runtime::{NoopTerminalHook, RunOutcome, open};

use crate::example::program;
use crate::support::{Runner, succeed};

/// A command of the program on a store, not yet started.
pub(super) fn command(store: &Path, args: &[&str]) -> Command {
    let mut command = for_people(store, args);
    command.args(["--json", "--verbose"]);
    command
}

/// The same, but it prints lines for people.
pub(super) fn for_people(store: &Path, args: &[&str]) -> Command {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    let mut command = Command::new(PROGRAM.get_or_init(|| program("document_pipeline")));
    command.arg("--store").arg(store).args(args);
    command
}

/// Runs a command to its end.
pub(super) fn run(store: &Path, args: &[&str]) -> Output {
    command(store, args).output().unwrap()
}

/// Indexes a folder without disturbance.
pub(super) fn ingest(store: &Path, folder: &Path) -> Vec<Value> {
    finish(store, &["ingest", folder.to_str().unwrap()])
}

/// Runs a command that is to end well, and gives its lines.
pub(super) fn finish(store: &Path, args: &[&str]) -> Vec<Value> {
    let output = run(store, args);
    assert!(output.status.success(), "{output:?}");
    lines(&output)
}

/// The lines of a command that has ended.
pub(super) fn lines(output: &Output) -> Vec<Value> {
    output.stdout.lines().map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect()
}

/// The exit code and the only line of an error.
pub(super) fn error(output: &Output) -> (i32, String) {
    let text = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
    (output.status.code().unwrap(), text.trim_end().to_owned())
}

/// Hits of a query: how often its words occur, by path.
pub(super) fn hits(output: &Output) -> BTreeMap<String, u64> {
    let hit = |line: &Value| Some((line["path"].as_str()?.to_owned(), line["occurrences"].as_u64()?));
    lines(output).iter().filter_map(hit).collect()
}

/// A number of the totals.
pub(super) fn total(lines: &[Value], name: &str) -> u64 {
    lines.last().and_then(|line| line["totals"][name].as_u64()).unwrap_or_else(|| panic!("no `{name}` in {lines:?}"))
}

/// A command at work whose lines are read as they come.
pub(super) struct Running {
    child: Child,
    out: BufReader<ChildStdout>,
    err: BufReader<ChildStderr>,
}

impl Running {
    pub(super) fn start(store: &Path, args: &[&str]) -> Self {
        let mut child = command(store, args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let err = BufReader::new(child.stderr.take().unwrap());
        Self { child, out, err }
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The next line; none at the end.
    pub(super) fn line(&mut self) -> Option<Value> {
        let mut line = String::new();
        let length = self.out.read_line(&mut line).unwrap();
        (length > 0).then(|| serde_json::from_str(&line).unwrap())
    }

    /// Reads on until `holds` does; gives whether it ever did.
    pub(super) fn read_until(&mut self, mut holds: impl FnMut(&Value) -> bool) -> bool {
        while let Some(line) = self.line() {
            if holds(&line) {
                return true;
            }
        }
        false
    }

    /// Waits for the next line that is for people only.
    pub(super) fn note(&mut self) -> String {
        let mut line = String::new();
        self.err.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Sends it what Ctrl-C does.
    pub(super) fn interrupt(&self) {
        let sent = Command::new("kill").args(["-INT", &self.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// Ends it by SIGKILL.
    pub(super) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Reads on to its end.
    pub(super) fn finish(mut self) -> Output {
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        self.out.read_to_end(&mut stdout).unwrap();
        self.err.read_to_end(&mut stderr).unwrap();
        Output { status: self.child.wait().unwrap(), stdout, stderr }
    }
}

/// Whether a line tells of a step of this stage.
pub(super) fn is_step(line: &Value, stage: &str) -> bool {
    line["event"] == "step" && line["stage"] == stage
}

/// What a store holds.
#[derive(Debug, PartialEq)]
pub(super) struct Contents {
    /// Everything the application wrote.
    pub(super) kv: BTreeMap<Bytes, Bytes>,
    /// How every run ended.
    pub(super) ends: Vec<RunOutcome>,
}

/// Reads a store after its last process has ended.
pub(super) async fn contents(store: &Path) -> Contents {
    let storage = open(&format!("file://{}", store.display())).await.unwrap();
    let kv: BTreeMap<Bytes, Bytes> = storage.kv().scan(b"").try_collect().await.unwrap();
    let runtime = storage.runtime(Runner::sync(succeed), NoopTerminalHook).build().unwrap();
    let mut ends = Vec::new();
    for (key, value) in &kv {
        let Some(path_id) = key.strip_prefix(b"generation/") else { continue };
        let latest: Value = serde_json::from_slice(value).unwrap();
        for generation in 1..=latest["document"]["generation"].as_u64().unwrap() {
            let id = format!("doc-{}-{generation}", std::str::from_utf8(path_id).unwrap());
            ends.push(runtime.run_end(&id).await.unwrap().expect("no run is left"));
        }
    }
    drop(runtime);
    storage.close().await.unwrap();
    Contents { kv, ends }
}
