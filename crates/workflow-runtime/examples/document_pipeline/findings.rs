//! What was found in a section, a batch of sections or a whole document: words and links.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::document::Kind;
use crate::keywords::words;
use crate::links::links;

/// Words with their frequencies, and links, of some sections.
///
/// The collections are sorted, so equal findings are equal bytes wherever they are stored.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Findings {
    pub(crate) sections: u64,
    pub(crate) words: BTreeMap<String, u64>,
    pub(crate) links: BTreeSet<String>,
}

impl Findings {
    /// Reads one section.
    pub(crate) fn of_section(kind: Kind, text: &str) -> Self {
        let mut counts = BTreeMap::new();
        for word in words(text) {
            *counts.entry(word).or_default() += 1;
        }
        Self { sections: 1, words: counts, links: links(kind, text) }
    }

    /// Adds the findings of other sections.
    pub(crate) fn merge(&mut self, other: Self) {
        self.sections += other.sections;
        for (word, count) in other.words {
            *self.words.entry(word).or_default() += count;
        }
        self.links.extend(other.links);
    }

    /// The `limit` most frequent words, the most frequent first and equal ones by the alphabet.
    pub(crate) fn top_words(&self, limit: usize) -> Vec<(&str, u64)> {
        let mut words: Vec<_> = self.words.iter().map(|(word, &count)| (word.as_str(), count)).collect();
        words.sort_by_key(|&(word, count)| (Reverse(count), word));
        words.truncate(limit);
        words
    }
}

#[cfg(test)]
mod tests {
    use super::Findings;
    use crate::document::Kind;

    fn of(sections: &[&str]) -> Findings {
        let mut all = Findings::default();
        for text in sections {
            all.merge(Findings::of_section(Kind::Markdown, text));
        }
        all
    }

    #[test]
    fn merging_adds_frequencies_and_joins_links() {
        let all = of(&["run step [a](x)", "run [b](x) [c](y)"]);
        assert_eq!(all.sections, 2);
        assert_eq!(all.words["run"], 2);
        assert_eq!(all.words["step"], 1);
        assert_eq!(all.links.into_iter().collect::<Vec<_>>(), ["x", "y"]);
    }

    #[test]
    fn the_top_words_are_the_most_frequent_then_the_first_by_the_alphabet() {
        let all = of(&["zeta beta alpha zeta", "gamma"]);
        assert_eq!(all.top_words(3), [("zeta", 2), ("alpha", 1), ("beta", 1)]);
        assert_eq!(all.top_words(9).len(), 4);
    }
}
