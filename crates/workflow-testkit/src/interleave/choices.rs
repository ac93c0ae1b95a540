//! Who decides, and what was decided.

use crate::Chance;

/// A choice that was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Taken {
    /// Which of the options; 0 is the one without surprise.
    pub(super) choice: u32,
    /// How many there were, at least two.
    pub(super) options: u32,
    /// Stands for everything that had happened by then, and for what the options were.
    pub(super) print: u64,
}

/// Makes the choices of one execution.
#[derive(Clone, Debug)]
pub(super) enum Chooser {
    /// As they were made before, then without surprises.
    Made {
        /// The choices.
        choices: Vec<u32>,
        /// What the prints were, as far as they are known.
        prints: Vec<u64>,
        /// Whether a choice that there is not becomes the one without surprise.
        lenient: bool,
    },
    /// By chance: without surprise in `calm` of eight cases.
    Drawn {
        /// Where chance comes from.
        chance: Chance,
        /// How calm.
        calm: u64,
    },
}

impl Chooser {
    /// Choices that have to be there.
    pub(super) fn made(choices: Vec<u32>) -> Self {
        Self::Made { choices, prints: Vec::new(), lenient: false }
    }

    /// The choices of `taken`, at the same stage of the same course.
    pub(super) fn again(taken: &[Taken]) -> Self {
        let choices = taken.iter().map(|taken| taken.choice).collect();
        Self::Made { choices, prints: taken.iter().map(|taken| taken.print).collect(), lenient: false }
    }

    /// The course of `taken` up to its last choice, then `choice` instead.
    pub(super) fn branch(taken: &[Taken], choice: u32) -> Self {
        let mut chooser = Self::again(taken);
        if let Self::Made { choices, .. } = &mut chooser {
            choices.pop();
            choices.push(choice);
        }
        chooser
    }

    /// Choices to try, whatever comes of them.
    pub(super) fn tried(choices: Vec<u32>) -> Self {
        Self::Made { choices, prints: Vec::new(), lenient: true }
    }

    /// Chance of a mood that it draws itself: from mostly calm to always wild.
    pub(super) fn drawn(mut chance: Chance) -> Self {
        let calm = [0, 3, 6, 7][usize::try_from(chance.below(4)).unwrap_or(0)];
        Self::Drawn { chance, calm }
    }

    /// Choice number `at`, among `options`, where everything so far is `print`.
    ///
    /// # Errors
    ///
    /// Why the choice that was made before cannot be made again.
    pub(super) fn choose(&mut self, at: usize, options: u32, print: u64) -> Result<u32, String> {
        match self {
            Self::Made { choices, prints, lenient } => {
                if prints.get(at).is_some_and(|expected| *expected != print) {
                    return Err(format!("choice {} was another one before", at + 1));
                }
                match choices.get(at).copied().unwrap_or(0) {
                    choice if choice < options => Ok(choice),
                    _ if *lenient => Ok(0),
                    choice => Err(format!("choice {} is {choice}, and there are only {options}", at + 1)),
                }
            }
            Self::Drawn { chance, calm } => {
                if chance.below(8) < *calm {
                    return Ok(0);
                }
                Ok(u32::try_from(chance.below(options.into())).unwrap_or(0))
            }
        }
    }
}

/// Choices as people copy them: without the unsurprising ones at the end.
pub(super) fn print(taken: &[Taken]) -> String {
    let surprises = taken.iter().rposition(|taken| taken.choice > 0).map_or(1, |last| last + 1);
    let choices: Vec<String> = taken.iter().take(surprises).map(|taken| taken.choice.to_string()).collect();
    if choices.is_empty() { "0".to_owned() } else { choices.join(".") }
}

/// Choices as they were printed.
pub(super) fn parse(choices: &str) -> Option<Vec<u32>> {
    choices.split('.').map(|choice| choice.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(choices: &[u32]) -> Vec<Taken> {
        choices.iter().map(|&choice| Taken { choice, options: 9, print: 0 }).collect()
    }

    #[test]
    fn choices_are_read_as_they_are_printed() {
        for (choices, text) in [(&[][..], "0"), (&[0, 0], "0"), (&[0, 2, 1, 0], "0.2.1"), (&[3], "3")] {
            assert_eq!(print(&taken(choices)), text);
        }
        assert_eq!(parse("0.2.1"), Some(vec![0, 2, 1]));
        for text in ["", "1..2", "a", "-1"] {
            assert_eq!(parse(text), None);
        }
    }

    #[test]
    fn a_choice_that_is_not_there_is_told_or_left_out() {
        assert!(Chooser::made(vec![2]).choose(0, 2, 7).is_err());
        assert_eq!(Chooser::tried(vec![2]).choose(0, 2, 7), Ok(0));
        assert!(Chooser::again(&taken(&[1])).choose(0, 2, 7).is_err());
        assert_eq!(Chooser::branch(&taken(&[1, 4]), 3).choose(1, 9, 0), Ok(3));
    }
}
