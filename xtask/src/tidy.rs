//! `cargo xtask tidy`: the rules of the style guide that a machine can check and no other tool does.

mod attributes;
mod changelog;
mod licences;
mod links;
mod naming;
mod shape;

use std::path::Path;

use xshell::Shell;

use crate::files::{self, TextFile};
use crate::finding::Finding;
use crate::layers::{self, LAYERS};
use crate::mutants;
use crate::workspace::{self, Package};

/// Prints every broken rule and fails if there is one, or if a mutant does not fit the code any more.
pub(crate) fn run(shell: &Shell) -> anyhow::Result<()> {
    let root = shell.current_dir();
    let files = files::read(&root)?;
    let packages = workspace::load(shell)?;
    let findings = check(&root, &files, &packages);
    for finding in &findings {
        eprintln!("{finding}");
    }
    anyhow::ensure!(findings.is_empty(), "tidy found broken rules: {}", findings.len());
    mutants::check(shell)
}

fn check(root: &Path, files: &[TextFile], packages: &[Package]) -> Vec<Finding> {
    let exists = |path: &str| root.join(path).exists();
    let mut findings = layers::check(LAYERS, packages);
    findings.extend(licences::check_texts(&exists));
    findings.extend(changelog::check(files));
    for file in files {
        let TextFile { path, text } = file;
        if file.is_rust() {
            findings.extend(shape::check(path, text));
            findings.extend(naming::check(path, text));
            findings.extend(attributes::check(path, text));
        }
        if file.is_markdown() {
            findings.extend(links::check(path, text, &exists));
        }
        if file.is_manifest() {
            findings.extend(licences::check_manifest(path, text));
        }
    }
    findings
}
