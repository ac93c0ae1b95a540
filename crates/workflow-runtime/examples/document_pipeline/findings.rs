//! What was found in a part of a document: words and links.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::document::Kind;
use crate::keywords::words;
use crate::links::links;

/// Words with their frequencies, and links.
///
/// The collections are sorted, so equal findings are equal bytes wherever they are stored.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Findings {
    pub(crate) words: BTreeMap<String, u64>,
    pub(crate) links: BTreeSet<String>,
}

impl Findings {
    pub(crate) fn of(kind: Kind, text: &str) -> Self {
        let mut counts = BTreeMap::new();
        for word in words(text) {
            *counts.entry(word).or_default() += 1;
        }
        Self { words: counts, links: links(kind, text) }
    }

    /// How often any word occurs.
    pub(crate) fn occurrences(&self) -> u64 {
        self.words.values().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::Findings;
    use crate::document::Kind;

    #[test]
    fn words_are_counted_and_links_are_collected() {
        let found = Findings::of(Kind::Markdown, "run step [a](x)\nrun [b](x) [c](y)");
        assert_eq!((found.words["run"], found.words["step"]), (2, 1));
        assert_eq!(found.occurrences(), found.words.values().sum::<u64>());
        assert_eq!(found.links.into_iter().collect::<Vec<_>>(), ["x", "y"]);
    }
}
