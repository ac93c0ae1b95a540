//! `cargo xtask mutants`: known bugs, kept as patches, each of which must make the tests that it names fail, and say what
//! it says they do. So the tests are tested: a rule whose test has stopped guarding it is found here.

mod mutant;
mod report;
mod trial;
mod workspace_copy;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use xshell::Shell;

use mutant::{Mutant, TestName};
use report::{Report, Row};
use trial::{Trial, Verdict};
use workspace_copy::WorkspaceCopy;

/// Where the patches lie.
const FOLDER: &str = "crates/workflow-runtime/tests/mutants";

/// How long each test takes without a mutant.
type Times<'a> = BTreeMap<&'a TestName, Duration>;

/// Tries every mutant, or those whose name contains `only`, on a copy of the workspace.
pub(crate) fn run(shell: &Shell, only: Option<&str>) -> anyhow::Result<()> {
    let start = Instant::now();
    let mut mutants = load(shell)?;
    mutants.retain(|mutant| only.is_none_or(|only| mutant.name.contains(only)));
    anyhow::ensure!(!mutants.is_empty(), "there is no such mutant in {FOLDER}");
    // Those whose tests are built together come together: a patch of a crate deep down has much rebuilt.
    mutants.sort_by(|one, two| (&one.tests, &one.name).cmp(&(&two.tests, &two.name)));
    let copy = WorkspaceCopy::make(shell)?;
    let times = without_a_mutant(&copy, &mutants)?;
    let mut report = Report::default();
    for mutant in &mutants {
        println!("==> {}: without this: {}", mutant.name, mutant.rule);
        report.rows.extend(try_out(&copy, mutant, &times)?);
    }
    println!("\n{report}\nin {:.0} s", start.elapsed().as_secs_f64());
    let survivors = report.survivors();
    anyhow::ensure!(survivors.is_empty(), "mutants that no test notices, or not all that should: {survivors:?}");
    Ok(())
}

/// Checks that every patch says what it must and fits the code as it is.
pub(crate) fn check(shell: &Shell) -> anyhow::Result<()> {
    for mutant in load(shell)? {
        workspace_copy::check(shell, &mutant)?;
    }
    Ok(())
}

/// Makes sure that every test passes as long as nothing is broken.
fn without_a_mutant<'a>(copy: &WorkspaceCopy, mutants: &'a [Mutant]) -> anyhow::Result<Times<'a>> {
    println!("==> without a mutant");
    let tests: Vec<_> = mutants.iter().flat_map(|mutant| &mutant.tests).collect();
    let mut times = Times::new();
    for group in mutant::by_binary(&tests) {
        let trial = Trial::prepare(copy, group[0])?;
        for test in group {
            let start = Instant::now();
            let verdict = trial.run(test, trial::patience(None), None)?;
            anyhow::ensure!(verdict == Verdict::Passed, "`{test}` {verdict} without a mutant");
            times.insert(test, start.elapsed());
        }
    }
    println!("    {} tests pass", times.len());
    Ok(times)
}

/// What the mutant's tests say of it.
fn try_out(copy: &WorkspaceCopy, mutant: &Mutant, times: &Times<'_>) -> anyhow::Result<Vec<Row>> {
    let start = Instant::now();
    copy.apply(mutant)?;
    let tests: Vec<_> = mutant.tests.iter().collect();
    let mut rows = Vec::new();
    for group in mutant::by_binary(&tests) {
        let trial = Trial::prepare(copy, group[0]);
        if let Err(error) = &trial {
            println!("    {error:#}");
        }
        for test in group {
            let patience = trial::patience(times.get(test).copied());
            let verdict = match &trial {
                Ok(trial) => trial.run(test, patience, mutant.says.as_deref())?,
                Err(_) => Verdict::NotBuilt,
            };
            let took = start.elapsed();
            println!("    {test} {verdict}, {:.1} s", took.as_secs_f64());
            rows.push(Row { mutant: mutant.name.clone(), test: test.to_string(), verdict, took });
        }
    }
    copy.revert(mutant)?;
    Ok(rows)
}

fn load(shell: &Shell) -> anyhow::Result<Vec<Mutant>> {
    let mut mutants = Vec::new();
    for path in shell.read_dir(FOLDER)? {
        if path.extension().is_some_and(|extension| extension == "patch") {
            mutants.push(Mutant::parse(&path, &shell.read_file(&path)?)?);
        }
    }
    Ok(mutants)
}
