//! Benchmarks: builds the workspace below `bench/`, measures, and guards against slow code by counting instructions.

use std::path::Path;

use anyhow::{Context, bail};
use xshell::{Shell, cmd};

use crate::flags::Bench;

/// Where the number of instructions is recorded that the small load may take.
const RECORDED: &str = "bench/instructions.txt";
/// How many more than recorded are still good, in percent.
const TOLERATED: u64 = 10;

/// Compares this runtime with its peers, or checks or records how many instructions the small load takes.
pub(crate) fn run(shell: &Shell, flags: &Bench) -> anyhow::Result<()> {
    cmd!(shell, "cargo build --release --quiet --manifest-path bench/Cargo.toml --target-dir bench/target").run()?;
    let program = Path::new("bench/target/release/workflow-bench");
    if flags.check || flags.record {
        let counted = count(shell, program)?;
        if flags.record {
            return Ok(shell.write_file(RECORDED, format!("{counted}\n"))?);
        }
        let recorded = shell.read_file(RECORDED)?;
        let verdict = judge(&recorded, counted)?;
        println!("{verdict}");
        return Ok(());
    }
    let args = &flags.args;
    Ok(cmd!(shell, "{program} compare {args...}").run()?)
}

/// Whether the tool is there that counts instructions.
pub(crate) fn can_count(shell: &Shell) -> bool {
    cmd!(shell, "valgrind --version").quiet().ignore_stdout().ignore_stderr().run().is_ok()
}

/// Counts the instructions of the small load, which do not depend on what else the machine does.
fn count(shell: &Shell, program: &Path) -> anyhow::Result<u64> {
    if !can_count(shell) {
        bail!("valgrind is needed to count instructions: install it with the system's package manager");
    }
    let output = cmd!(shell, "valgrind --tool=callgrind --callgrind-out-file=/dev/null {program} load").output()?;
    parse(&String::from_utf8_lossy(&output.stderr)).context("valgrind has printed no number of instructions")
}

/// The number in valgrind's line `==1== Collected : 123`.
fn parse(output: &str) -> Option<u64> {
    let (_, rest) = output.split_once("Collected : ")?;
    rest.lines().next()?.trim().parse().ok()
}

/// What is to be said of `counted` instructions; an error when they are too many.
fn judge(recorded: &str, counted: u64) -> anyhow::Result<String> {
    let recorded: u64 = recorded.trim().parse().with_context(|| format!("{RECORDED} does not hold a number"))?;
    let percent = counted as f64 * 100.0 / recorded as f64;
    let verdict = format!("{counted} instructions, {percent:.1} % of the {recorded} on record");
    if counted > recorded + recorded / 100 * TOLERATED {
        bail!("{verdict}: more than {TOLERATED} % slower. `cargo xtask bench --record` accepts that");
    }
    Ok(verdict)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_read_from_what_valgrind_prints() {
        assert_eq!(parse("==7== \n==7== Collected : 288233422\n==7==\n"), Some(288_233_422));
        assert_eq!(parse("==7== nothing"), None);
    }

    #[test]
    fn a_tenth_more_is_tolerated() {
        assert!(judge("1000\n", 1_100).is_ok());
        assert!(judge("1000\n", 1_101).is_err());
        assert!(judge("1000\n", 10).is_ok());
        assert!(judge("none\n", 1).is_err());
    }
}
