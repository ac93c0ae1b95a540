//! One test run in the copy, with an end: a test that hangs has noticed something, too.

use std::fmt;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use serde_json::Value;
use xshell::cmd;

use super::mutant::TestName;
use super::workspace_copy::WorkspaceCopy;

/// A test hangs that takes so many times as long as without a mutant, but at least so long.
const SLOWER: u32 = 10;
const SHORTEST_PATIENCE: Duration = Duration::from_secs(30);
/// No test takes as long.
const LONGEST_PATIENCE: Duration = Duration::from_secs(150);

/// Beside the copy.
const OUTPUT: &str = "../said-by-the-test.txt";
/// How long the simulation goes on, where a test leaves that to the environment.
const SIMULATION: (&str, &str) = ("SIM_MINUTES", "1");

/// The test binary of the copy as it was built last.
pub(crate) struct Trial {
    binary: String,
    /// Where the tests write what they say.
    output: PathBuf,
}

/// What became of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Passed,
    Failed,
    Hung,
    /// It has noticed something else than it must say.
    Unsaid,
    NotFound,
    NotBuilt,
}

impl Verdict {
    /// Whether the test has noticed the mutant.
    pub(crate) fn notices(self) -> bool {
        match self {
            Self::Failed | Self::Hung => true,
            Self::Passed | Self::Unsaid | Self::NotFound | Self::NotBuilt => false,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Passed => "passes",
            Self::Failed => "fails",
            Self::Hung => "hangs",
            Self::Unsaid => "says another",
            Self::NotFound => "does not exist",
            Self::NotBuilt => "does not build",
        })
    }
}

/// How long to wait for a test that passes in `usual` without a mutant.
pub(crate) fn patience(usual: Option<Duration>) -> Duration {
    usual.map_or(LONGEST_PATIENCE, |usual| (usual * SLOWER).clamp(SHORTEST_PATIENCE, LONGEST_PATIENCE))
}

impl Trial {
    /// Builds the binary of `test`, as the copy is now.
    pub(crate) fn prepare(copy: &WorkspaceCopy, test: &TestName) -> anyhow::Result<Self> {
        let TestName { package, target, .. } = test;
        let which: &[&str] = if target == "lib" { &["--lib"] } else { &["--test", target] };
        let build = cmd!(copy.shell(), "cargo test -p {package} {which...} --no-run --locked --message-format json");
        let output = build.quiet().ignore_status().output()?;
        let said = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() {
            let error = said.lines().find_map(compile_error);
            let error = error.unwrap_or_else(|| String::from_utf8_lossy(&output.stderr).into_owned());
            anyhow::bail!("the tests of {package} do not build in the copy: {error}");
        }
        let binary = said.lines().find_map(|line| executable(line, target));
        let binary = binary.with_context(|| format!("there is no test `{test}`"))?;
        Ok(Self { binary, output: copy.shell().current_dir().join(OUTPUT) })
    }

    /// Runs `test` in a process of its own. If it notices something, it must say `says`.
    pub(crate) fn run(&self, test: &TestName, patience: Duration, says: Option<&str>) -> anyhow::Result<Verdict> {
        let verdict = self.verdict(test, patience)?;
        let is_said = says.is_none_or(|says| fs::read_to_string(&self.output).is_ok_and(|said| said.contains(says)));
        Ok(if verdict.notices() && !is_said { Verdict::Unsaid } else { verdict })
    }

    fn verdict(&self, test: &TestName, patience: Duration) -> anyhow::Result<Verdict> {
        let name = &test.name;
        let listed = Command::new(&self.binary).args(["--exact", name, "--list"]).output()?;
        if !String::from_utf8_lossy(&listed.stdout).contains(": test") {
            return Ok(Verdict::NotFound);
        }
        let output = File::create(&self.output).with_context(|| format!("cannot write {}", self.output.display()))?;
        let mut process = Command::new(&self.binary)
            .args(["--exact", name, "--include-ignored", "--nocapture"])
            .env(SIMULATION.0, SIMULATION.1)
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()?;
        let start = Instant::now();
        while start.elapsed() < patience {
            if let Some(status) = process.try_wait()? {
                return Ok(if status.success() { Verdict::Passed } else { Verdict::Failed });
            }
            thread::sleep(Duration::from_millis(20));
        }
        process.kill()?;
        process.wait()?;
        Ok(Verdict::Hung)
    }
}

/// The test binary that a line of cargo's output is about, if it is that of `target`.
fn executable(line: &str, target: &str) -> Option<String> {
    let message: Value = serde_json::from_str(line).ok()?;
    if message["profile"]["test"] != true {
        return None;
    }
    let kind = if target == "lib" { "lib" } else { "test" };
    let is_target = message["target"]["kind"][0] == kind && (target == "lib" || message["target"]["name"] == target);
    is_target.then(|| message["executable"].as_str().map(str::to_owned))?
}

/// The error of the compiler that a line of cargo's output is about.
fn compile_error(line: &str) -> Option<String> {
    let message: Value = serde_json::from_str(line).ok()?;
    let said = &message["message"];
    (said["level"] == "error").then(|| said["rendered"].as_str().map(str::to_owned))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_binary_of_a_target_is_found() {
        let line = |kind: &str, test: bool| {
            format!(r#"{{"target":{{"kind":["{kind}"],"name":"it"}},"profile":{{"test":{test}}},"executable":"/x"}}"#)
        };
        assert_eq!(executable(&line("test", true), "it").as_deref(), Some("/x"));
        assert_eq!(executable(&line("lib", true), "lib").as_deref(), Some("/x"));
        assert_eq!(executable(&line("test", false), "it"), None);
        assert_eq!(executable(&line("test", true), "other"), None);
        assert_eq!(executable("   Compiling", "it"), None);
    }

    #[test]
    fn an_error_of_the_compiler_is_found() {
        let line = |level: &str| format!(r#"{{"message":{{"level":"{level}","rendered":"it is wrong"}}}}"#);
        assert_eq!(compile_error(&line("error")).as_deref(), Some("it is wrong"));
        assert_eq!(compile_error(&line("warning")), None);
        assert_eq!(compile_error("   Compiling"), None);
    }

    #[test]
    fn patience_is_longer_for_slow_tests_and_never_endless() {
        let check = |usual: u64, expected: Duration| assert_eq!(patience(Some(Duration::from_secs(usual))), expected);
        check(1, SHORTEST_PATIENCE);
        check(8, Duration::from_secs(80));
        check(3_600, LONGEST_PATIENCE);
        assert_eq!(patience(None), LONGEST_PATIENCE);
    }
}
