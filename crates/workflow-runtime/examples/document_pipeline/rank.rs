//! The order of the documents that hold the words of a query.

use std::collections::BTreeMap;

/// A document that holds a word, and the word's weight there.
pub(crate) struct Posting {
    pub(crate) document_id: String,
    pub(crate) weight: f64,
}

/// A document in the answer.
#[derive(Debug, PartialEq)]
pub(crate) struct Ranked {
    pub(crate) score: f64,
    pub(crate) path: String,
}

/// Ranks by the sum, over the words of the query, of the word's weight in the document times its
/// rarity, `ln(1 + documents / documents that hold the word)`; equal scores by path.
///
/// `postings` are given per word. `paths` are those of all documents by id; postings of other
/// documents do not count.
pub(crate) fn rank(postings: &[Vec<Posting>], paths: &BTreeMap<String, String>) -> Vec<Ranked> {
    let mut scores: BTreeMap<&str, f64> = BTreeMap::new();
    for of_word in postings {
        let known: Vec<_> =
            of_word.iter().filter_map(|posting| Some((paths.get(&posting.document_id)?, posting.weight))).collect();
        let rarity = (1.0 + paths.len() as f64 / known.len() as f64).ln();
        for (path, weight) in known {
            *scores.entry(path).or_default() += weight * rarity;
        }
    }
    let mut ranked: Vec<_> = scores.into_iter().map(|(path, score)| Ranked { score, path: path.to_owned() }).collect();
    // The sort is stable, and the scores came by path.
    ranked.sort_by(|a, b| b.score.total_cmp(&a.score));
    ranked
}

#[cfg(test)]
mod tests {
    use super::{Posting, rank};

    /// `postings`: per word, the documents that hold it and the weight. Documents are a, b, c, d.
    fn check(postings: &[&[(&str, f64)]], expected: &[&str]) {
        let paths = ["a", "b", "c", "d"].map(|id| (id.to_owned(), format!("/{id}")));
        let posting = |&(id, weight): &(&str, f64)| Posting { document_id: id.to_owned(), weight };
        let postings: Vec<Vec<_>> = postings.iter().map(|of_word| of_word.iter().map(posting).collect()).collect();
        let ranked = rank(&postings, &paths.into());
        let ranked: Vec<_> = ranked.iter().map(|ranked| ranked.path.as_str()).collect();
        assert_eq!(ranked, expected);
    }

    #[test]
    fn a_heavier_word_ranks_higher() {
        check(&[&[("a", 1.0), ("b", 2.0)]], &["/b", "/a"]);
    }

    #[test]
    fn a_rare_word_counts_more_than_a_common_one() {
        let common = [("a", 1.0), ("b", 1.0), ("c", 1.0)];
        check(&[&common, &[("d", 1.0)]], &["/d", "/a", "/b", "/c"]);
    }

    #[test]
    fn a_document_with_both_words_comes_first() {
        let (one, two) = ([("a", 1.0), ("b", 1.0)], [("b", 1.0), ("c", 1.0)]);
        check(&[&one, &two], &["/b", "/a", "/c"]);
    }

    #[test]
    fn documents_that_are_not_known_are_left_out_and_do_not_make_a_word_common() {
        let superseded = [("c", 1.0), ("old1", 9.0), ("old2", 9.0)];
        check(&[&[("a", 1.0), ("b", 1.0)], &superseded], &["/c", "/a", "/b"]);
    }

    #[test]
    fn nothing_is_ranked_where_no_document_holds_a_word() {
        check(&[&[], &[]], &[]);
    }
}
