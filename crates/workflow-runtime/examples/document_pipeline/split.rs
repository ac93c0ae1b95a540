//! Cuts a text into sections: at Markdown headings, and into blocks of lines where there are none.

use std::ops::Range;

use crate::document::Kind;

/// A longer section is cut, so that one unit of work stays small.
pub(crate) const MAX_LINES: usize = 60;
/// As `MAX_LINES`, for texts whose lines are long.
pub(crate) const MAX_BYTES: usize = 16 * 1024;

/// The sections of `text` as byte ranges, in order. Only blank space lies outside of them.
pub(crate) fn sections(kind: Kind, text: &str) -> Vec<Range<usize>> {
    let mut sections = Sections { text, found: Vec::new(), open: 0..0, lines: 0 };
    let mut fence = None;
    for line in text.split_inclusive('\n') {
        if kind == Kind::Markdown {
            if fence.is_none() && is_heading(line) {
                sections.close();
            }
            fence = after_line(fence, line);
        }
        if sections.lines == MAX_LINES {
            sections.close();
        }
        let mut rest = line;
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(piece_length(rest));
            sections.push(piece);
            rest = after;
        }
        sections.lines += 1;
    }
    sections.close();
    sections.found
}

/// The sections found so far, and the one that still grows.
struct Sections<'a> {
    text: &'a str,
    found: Vec<Range<usize>>,
    open: Range<usize>,
    lines: usize,
}

impl Sections<'_> {
    fn push(&mut self, piece: &str) {
        if self.open.len() + piece.len() > MAX_BYTES {
            self.close();
        }
        self.open.end += piece.len();
    }

    fn close(&mut self) {
        if !self.text[self.open.clone()].trim().is_empty() {
            self.found.push(self.open.clone());
        }
        self.open.start = self.open.end;
        self.lines = 0;
    }
}

/// Bytes of `rest` that fit into one section, cut after blank space where there is any.
fn piece_length(rest: &str) -> usize {
    if rest.len() <= MAX_BYTES {
        return rest.len();
    }
    let longest = rest.floor_char_boundary(MAX_BYTES);
    match rest[..longest].char_indices().rfind(|(_, c)| c.is_whitespace()) {
        Some((at, space)) => at + space.len_utf8(),
        None => longest,
    }
}

/// One to six `#` and a space, indented by three spaces at most.
fn is_heading(line: &str) -> bool {
    let Some(line) = unindented(line) else {
        return false;
    };
    let text = line.trim_start_matches('#');
    (1..=6).contains(&(line.len() - text.len())) && (text.is_empty() || text.starts_with([' ', '\t']))
}

/// The marks that opened a block of code: the character and how often it stands there.
type Fence = (char, usize);

/// The block of code that is open after `line`, given the one before it.
fn after_line(fence: Option<Fence>, line: &str) -> Option<Fence> {
    let Some(line) = unindented(line) else {
        return fence;
    };
    let Some(mark) = line.chars().next().filter(|c| ['`', '~'].contains(c)) else {
        return fence;
    };
    let after = line.trim_start_matches(mark);
    let length = line.len() - after.len();
    match fence {
        None if length >= 3 && !(mark == '`' && after.contains('`')) => Some((mark, length)),
        Some((open, least)) if open == mark && length >= least && after.is_empty() => None,
        _ => fence,
    }
}

/// The line without its end and an indent of up to three spaces; none when it is indented further.
fn unindented(line: &str) -> Option<&str> {
    let text = line.trim_start_matches(' ');
    (line.len() - text.len() <= 3).then(|| text.trim_end())
}

#[cfg(test)]
mod tests;
