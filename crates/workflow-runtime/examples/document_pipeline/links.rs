//! The links of a text: web addresses anywhere, and whatever Markdown points to.

use std::collections::BTreeSet;

use crate::document::Kind;

/// A longer target is data rather than an address.
const MAX_LINK_BYTES: usize = 1024;

/// The targets of all links in `text`, each once.
pub(crate) fn links(kind: Kind, text: &str) -> BTreeSet<String> {
    let mut targets: Vec<&str> = text.lines().flat_map(web_addresses).collect();
    if kind == Kind::Markdown {
        targets.extend(text.lines().flat_map(inline_links));
        targets.extend(text.lines().filter_map(definition));
    }
    targets.into_iter().filter(|target| (1..=MAX_LINK_BYTES).contains(&target.len())).map(str::to_owned).collect()
}

/// `https://example.org/page` wherever it stands.
fn web_addresses(line: &str) -> impl Iterator<Item = &str> {
    line.match_indices("://").filter_map(|(at, mark)| {
        let scheme = ["https", "http"].into_iter().find(|scheme| line[..at].ends_with(scheme))?;
        let start = at - scheme.len();
        let inside_a_word = line[..start].ends_with(char::is_alphanumeric);
        let address = target(&line[start..]).trim_end_matches(['.', ',', ';', ':', '!', '?', '*', '_']);
        let has_host = address.len() > scheme.len() + mark.len();
        (has_host && !inside_a_word).then_some(address)
    })
}

/// `[text](target "title")`, images included.
fn inline_links(line: &str) -> impl Iterator<Item = &str> {
    line.match_indices("](")
        .filter(|(at, _)| line[..*at].contains('['))
        .map(|(at, mark)| target(line[at + mark.len()..].trim_start_matches([' ', '<'])))
}

/// `[label]: target` at the start of a line.
fn definition(line: &str) -> Option<&str> {
    let (_, after) = line.strip_prefix('[')?.split_once("]:")?;
    Some(target(after.trim_start_matches([' ', '\t', '<'])))
}

/// The start of `text` up to what cannot be part of a target: blank space, a quote, an angle bracket
/// or a closing bracket that was not opened inside.
fn target(text: &str) -> &str {
    let mut open = 0_u32;
    let end = text.find(|c: char| match c {
        '(' | '[' => {
            open += 1;
            false
        }
        ')' | ']' if open > 0 => {
            open -= 1;
            false
        }
        ')' | ']' | '<' | '>' | '"' | '\'' | '`' | '|' | '\\' | '{' | '}' => true,
        _ => c.is_whitespace() || c.is_control(),
    });
    &text[..end.unwrap_or(text.len())]
}

#[cfg(test)]
mod tests;
