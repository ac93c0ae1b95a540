//! The order of the documents that hold the words of a query.

use std::collections::BTreeMap;

/// How often a word occurs in each document, by path.
pub(crate) type Postings = BTreeMap<String, u64>;

/// A document in the answer.
#[derive(Debug, PartialEq)]
pub(crate) struct Ranked {
    pub(crate) path: String,
    pub(crate) score: f64,
    /// How often any of the words occurs in it.
    pub(crate) occurrences: u64,
}

/// Ranks by the sum, over the words of the query, of the word's weight in the document times its rarity; equal scores
/// by path. `postings` are given per word.
pub(crate) fn rank(postings: &[Postings]) -> Vec<Ranked> {
    let mut scores: BTreeMap<&str, (f64, u64)> = BTreeMap::new();
    for of_word in postings {
        for (path, &count) in of_word {
            let (score, occurrences) = scores.entry(path).or_default();
            *score += weight(count) * rarity(of_word.len());
            *occurrences += count;
        }
    }
    let ranked = |(path, (score, occurrences)): (&str, _)| Ranked { path: path.to_owned(), score, occurrences };
    let mut ranked: Vec<_> = scores.into_iter().map(ranked).collect();
    // The sort is stable, and the scores came by path.
    ranked.sort_by(|a, b| b.score.total_cmp(&a.score));
    ranked
}

/// The tenth occurrence says less than the first.
fn weight(count: u64) -> f64 {
    1.0 + (count as f64).ln()
}

/// A word that stands in many documents tells little about any of them.
fn rarity(documents: usize) -> f64 {
    1.0 / (1.0 + (documents as f64).ln())
}

#[cfg(test)]
mod tests {
    use super::{Postings, rank};

    /// `postings`: per word, the documents that hold it and how often.
    fn check(postings: &[&[(&str, u64)]], expected: &[&str]) {
        let postings: Vec<Postings> = postings
            .iter()
            .map(|of_word| of_word.iter().map(|(path, count)| ((*path).to_owned(), *count)).collect())
            .collect();
        let ranked = rank(&postings);
        let ranked: Vec<_> = ranked.iter().map(|ranked| ranked.path.as_str()).collect();
        assert_eq!(ranked, expected);
    }

    #[test]
    fn a_frequent_word_ranks_higher_but_not_in_proportion() {
        check(&[&[("a", 1), ("b", 2)]], &["b", "a"]);
        let ranked = rank(&[[("a".to_owned(), 1), ("b".to_owned(), 20)].into()]);
        assert!(ranked[0].score < 20.0 * ranked[1].score);
    }

    #[test]
    fn a_rare_word_counts_more_than_a_common_one() {
        check(&[&[("a", 1), ("b", 1), ("c", 1)], &[("d", 1)]], &["d", "a", "b", "c"]);
    }

    #[test]
    fn a_document_with_both_words_comes_first() {
        check(&[&[("a", 1), ("b", 1)], &[("b", 1), ("c", 1)]], &["b", "a", "c"]);
        let both = rank(&[[("b".to_owned(), 2)].into(), [("b".to_owned(), 3)].into()]);
        assert_eq!(both[0].occurrences, 5);
    }

    #[test]
    fn nothing_is_ranked_where_no_document_holds_a_word() {
        check(&[&[], &[]], &[]);
    }
}
