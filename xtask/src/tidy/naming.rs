//! Some foreign crates are named in one module each, so that replacing them is a change in one place.

use crate::finding::Finding;

/// A foreign crate, and the only module of the workspace's libraries that names it.
struct Home {
    name: &'static str,
    /// The module's file without `.rs`, which is also the folder of its submodules.
    module: &'static str,
}

const HOMES: &[Home] = &[
    Home { name: "taquba", module: "crates/workflow-runtime/src/taquba" },
    Home { name: "slatedb", module: "crates/workflow-runtime/src/taquba" },
    Home { name: "bincode", module: "crates/workflow-effects/src/stored" },
];

/// Finds lines of a library that name a foreign crate outside its home. Comments count: they promise what they name.
pub(crate) fn check(path: &str, text: &str) -> Vec<Finding> {
    if !is_library(path) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for Home { name, module } in HOMES {
        if is_within(path, module) {
            continue;
        }
        for (index, line) in text.lines().enumerate() {
            if names_crate(line, name) {
                let message = format!("`{name}` is named outside {module} (a module of that name is `crate::{name}`)");
                findings.push(Finding::at_line(path, index + 1, message));
            }
        }
    }
    findings
}

fn is_library(path: &str) -> bool {
    let mut parts = path.split('/');
    parts.next() == Some("crates") && parts.nth(1) == Some("src")
}

fn is_within(path: &str, module: &str) -> bool {
    match path.strip_prefix(module) {
        Some(rest) => rest == ".rs" || rest.starts_with('/'),
        None => false,
    }
}

fn names_crate(line: &str, name: &str) -> bool {
    let mut places = line.match_indices(name).map(|(index, _)| index);
    places.any(|index| is_crate_path(&line[..index], &line[index + name.len()..]))
}

/// Whether the word between `before` and `after` starts a path or is imported, and is no module of another path.
fn is_crate_path(before: &str, after: &str) -> bool {
    let is_word = |character: char| character.is_alphanumeric() || character == '_';
    if before.ends_with(is_word) || after.starts_with(is_word) {
        return false;
    }
    if let Some(parent) = before.strip_suffix("::")
        && parent.ends_with(is_word)
    {
        return false;
    }
    let imported = before.trim_end().ends_with("use") || before.trim_end().ends_with("extern crate");
    after.starts_with("::") || imported
}

#[cfg(test)]
mod tests;
