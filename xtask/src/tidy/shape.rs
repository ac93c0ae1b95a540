//! The shape of a source file: it opens by saying what it holds, and it is short enough to hold one concept.

use std::ops::Range;

use crate::finding::Finding;

const MAX_PRODUCTION_LINES: usize = 500;
const MAX_TEST_LINES: usize = 800;

/// Finds a missing header, or too many lines. Unit tests do not count against the file they are in.
pub(crate) fn check(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !has_header(text) {
        findings.push(Finding::at_line(path, 1, "must open with `//! …`: what the file holds and why it is apart"));
    }
    let (kind, lines, limit) = match is_test(path) {
        true => ("test", text.lines().count(), MAX_TEST_LINES),
        false => ("production", production_lines(text), MAX_PRODUCTION_LINES),
    };
    if lines > limit {
        let message = format!("has {lines} lines of {kind} code; the limit is {limit}");
        findings.push(Finding::in_file(path, message));
    }
    findings
}

/// Opens with `//! …`, or with a file that holds the documentation: a front page shared with the repository.
fn has_header(text: &str) -> bool {
    if text.starts_with("#![doc = include_str!(") {
        return true;
    }
    match text.strip_prefix("//!") {
        Some(rest) => rest.lines().next().is_some_and(|line| !line.trim().is_empty()),
        None => false,
    }
}

/// Whether the file is compiled into tests only: in a folder `tests`, or a unit-test module in a file of its own.
fn is_test(path: &str) -> bool {
    path.split('/').any(|part| part == "tests" || part == "tests.rs")
}

fn production_lines(text: &str) -> usize {
    let lines: Vec<&str> = text.lines().collect();
    let mut production = 0;
    let mut index = 0;
    while index < lines.len() {
        let tests = test_module(&lines, index);
        production += usize::from(tests.is_empty());
        index = tests.end.max(index + 1);
    }
    production
}

/// The lines of the `#[cfg(test)]` module that starts at `start`; empty if none does.
fn test_module(lines: &[&str], start: usize) -> Range<usize> {
    if lines[start] != "#[cfg(test)]" {
        return start..start;
    }
    let is_attribute = |line: &&str| line.starts_with("#[");
    let module = start + lines[start..].iter().take_while(|line| is_attribute(line)).count();
    let declaration = lines.get(module).copied().unwrap_or_default();
    if !declaration.split(' ').any(|word| word == "mod") {
        return start..start;
    }
    if declaration.ends_with(';') {
        return start..module + 1;
    }
    // In formatted code only the module's own brace closes in the first column.
    let end = lines[module..].iter().position(|line| *line == "}");
    start..end.map_or(lines.len(), |end| module + end + 1)
}

#[cfg(test)]
mod tests;
