//! Proves that the light crates stay light: built alone they do not pull in the queue's database, so they
//! compile in seconds.

use xshell::{Shell, cmd};

use crate::layers::{self, LAYERS};
use crate::workspace::Package;

/// Crates that users and tests build without Taquba.
const LIGHT: &[&str] = &["workflow-core", "workflow-testkit"];

/// Crates that take minutes to build, with all that start with their name and `-`.
const HEAVY: &[&str] = &["taquba", "slatedb"];

/// Checks what the light crates depend on, then tests each alone.
pub(crate) fn run(shell: &Shell, packages: &[Package]) -> anyhow::Result<()> {
    for package in packages {
        if LIGHT.contains(&package.name.as_str())
            && let Some(finding) = layers::check_package(LAYERS, package).first()
        {
            anyhow::bail!("{finding}");
        }
    }
    for name in LIGHT {
        let tree = cmd!(shell, "cargo tree -p {name} -e normal --prefix none --locked").read()?;
        let heavy = heavy_crates(&tree);
        anyhow::ensure!(
            heavy.is_empty(),
            "`{name}` depends on {}: see `cargo tree -p {name} -e normal`",
            heavy.join(", ")
        );
    }
    for name in LIGHT {
        cmd!(shell, "cargo test -p {name} --locked").run()?;
    }
    Ok(())
}

/// The heavy crates in the output of `cargo tree --prefix none`, whose lines start with a crate's name.
fn heavy_crates(tree: &str) -> Vec<&str> {
    let names = tree.lines().filter_map(|line| line.split(' ').next());
    let mut heavy: Vec<&str> = names.filter(|name| is_heavy(name)).collect();
    heavy.sort_unstable();
    heavy.dedup();
    heavy
}

fn is_heavy(name: &str) -> bool {
    HEAVY.iter().any(|heavy| match name.strip_prefix(heavy) {
        Some(rest) => rest.is_empty() || rest.starts_with('-'),
        None => false,
    })
}

#[cfg(test)]
mod tests {
    use super::heavy_crates;

    fn check(tree: &str, expected: &[&str]) {
        assert_eq!(heavy_crates(tree), expected);
    }

    #[test]
    fn a_light_tree_has_no_heavy_crate() {
        check("workflow-core v0.1.0 (/repo/core)\nbytes v1.0.0\ntaqubas v1.0.0\n\n", &[]);
    }

    #[test]
    fn a_heavy_crate_is_found_once() {
        let tree = "testkit v0.1.0\ntaquba v0.16.0\nslatedb-common v0.1.0\nslatedb v0.1.0\ntaquba v0.16.0 (*)\n";
        check(tree, &["slatedb", "slatedb-common", "taquba"]);
    }
}
