//! Links between the repository's documents lead somewhere. Links to the web are not followed: CI does not
//! depend on it.

use crate::finding::Finding;

/// Finds links of a Markdown file whose target is no file or folder of the repository.
pub(crate) fn check(path: &str, text: &str, exists: &dyn Fn(&str) -> bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (line, target) in targets(text) {
        if is_elsewhere(&target) {
            continue;
        }
        let found = resolve(path, &target).is_some_and(|target| exists(&target));
        if !found {
            let message = format!("link to `{target}` leads nowhere");
            findings.push(Finding::at_line(path, line, message));
        }
    }
    findings
}

/// The targets of inline links and link definitions outside code, each with its line.
fn targets(text: &str) -> Vec<(usize, String)> {
    let mut targets = Vec::new();
    let mut in_code = false;
    for (index, line) in text.lines().enumerate() {
        let is_fence = line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~");
        in_code ^= is_fence;
        if !in_code && !is_fence {
            let line = without_code(line);
            let found = inline_targets(&line).chain(definition_target(&line));
            targets.extend(found.map(|target| (index + 1, target.to_owned())));
        }
    }
    targets
}

/// Drops inline code: text between two runs of as many backticks.
fn without_code(line: &str) -> String {
    let mut kept = String::new();
    let mut rest = line;
    while let Some(start) = rest.find('`') {
        let run = rest[start..].len() - rest[start..].trim_start_matches('`').len();
        let (before, code) = rest.split_at(start);
        let (fence, code) = code.split_at(run);
        kept.push_str(before);
        match code.find(fence) {
            Some(end) => rest = &code[end + run..],
            None => rest = code,
        }
    }
    kept + rest
}

fn inline_targets(line: &str) -> impl Iterator<Item = &str> {
    let starts = line.match_indices("](").map(|(index, _)| index + 2);
    starts.map(|start| first_word(&line[start..], &[')']))
}

fn definition_target(line: &str) -> Option<&str> {
    let (label, target) = line.strip_prefix('[')?.split_once("]:")?;
    let is_definition = !label.starts_with('^') && !label.contains(']');
    is_definition.then(|| first_word(target.trim_start(), &[]))
}

/// The target without the title after it, and without angle brackets.
fn first_word<'a>(text: &'a str, ends: &[char]) -> &'a str {
    let end = text.find(|character: char| character.is_whitespace() || ends.contains(&character));
    let word = &text[..end.unwrap_or(text.len())];
    word.trim_start_matches('<').trim_end_matches('>')
}

fn is_elsewhere(target: &str) -> bool {
    target.contains("://") || target.starts_with("mailto:") || target.starts_with('#')
}

/// The path of `target` from the repository root; `None` if it leaves the repository.
fn resolve(path: &str, target: &str) -> Option<String> {
    let target = target.split(['#', '?']).next().unwrap_or_default();
    if target.is_empty() || target.starts_with('/') {
        return None;
    }
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests;
