//! What is ordered, and the limits of what people send.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::amount::Amount;

const MAX_ID_LEN: usize = 64;
const MAX_ITEM_LEN: usize = 200;
pub(crate) const MAX_NAME_LEN: usize = 80;
pub(crate) const MAX_TEXT_LEN: usize = 2_000;

/// A purchase order. It never changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) id: String,
    pub(crate) item: String,
    pub(crate) amount: Amount,
    pub(crate) requester: String,
    pub(crate) note: String,
}

/// An order as it is sent, not yet looked at.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Draft {
    /// Chosen by a sender who may have to send it again; drawn here when it is empty.
    pub(crate) id: String,
    pub(crate) item: String,
    pub(crate) amount: String,
    pub(crate) requester: String,
    pub(crate) note: String,
}

/// What is wrong with something that was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Invalid {
    pub(crate) field: &'static str,
    pub(crate) problem: String,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.problem)
    }
}

impl Draft {
    /// The order that it is. The same draft with an id is the same order every time.
    pub(crate) fn parse(self) -> Result<Order, Invalid> {
        let amount = self.amount.trim().parse().map_err(|rule| invalid("amount", rule))?;
        let order = Order {
            id: if self.id.is_empty() { draw_id() } else { self.id },
            item: self.item.trim().to_owned(),
            amount,
            requester: self.requester.trim().to_owned(),
            note: self.note.trim().replace("\r\n", "\n"),
        };
        order.check()?;
        Ok(order)
    }
}

impl Order {
    /// Whether every field keeps its limits.
    pub(crate) fn check(&self) -> Result<(), Invalid> {
        if !is_id(&self.id) {
            return Err(invalid("id", format!("1 to {MAX_ID_LEN} letters, digits and hyphens")));
        }
        if self.amount.is_zero() {
            return Err(invalid("amount", "an order for nothing needs no approval"));
        }
        check_line("item", &self.item, MAX_ITEM_LEN)?;
        check_line("requester", &self.requester, MAX_NAME_LEN)?;
        check_text("note", &self.note)
    }
}

/// Whether `text` can be the id of an order, or of something that is sent to one.
pub(crate) fn is_id(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    !text.is_empty() && text.len() <= MAX_ID_LEN && text.bytes().all(is_plain)
}

/// An id that nobody else has.
pub(crate) fn draw_id() -> String {
    format!("{:016x}", rand::random::<u64>())
}

/// A line of text that has to be there.
pub(crate) fn check_line(field: &'static str, text: &str, max: usize) -> Result<(), Invalid> {
    let length = text.chars().count();
    if length == 0 || length > max {
        return Err(invalid(field, format!("1 to {max} characters")));
    }
    if text.chars().any(char::is_control) {
        return Err(invalid(field, "one line without control characters"));
    }
    Ok(())
}

/// A text of any number of lines.
pub(crate) fn check_text(field: &'static str, text: &str) -> Result<(), Invalid> {
    if text.chars().count() > MAX_TEXT_LEN {
        return Err(invalid(field, format!("at most {MAX_TEXT_LEN} characters")));
    }
    if text.chars().any(|c| c.is_control() && c != '\n' && c != '\t') {
        return Err(invalid(field, "no control characters"));
    }
    Ok(())
}

fn invalid(field: &'static str, problem: impl Into<String>) -> Invalid {
    Invalid { field, problem: problem.into() }
}

#[cfg(test)]
mod tests {
    use super::{Draft, is_id};

    fn draft() -> Draft {
        Draft {
            id: "po-1".into(),
            item: " lamp ".into(),
            amount: " 120.5 ".into(),
            requester: "Ada".into(),
            note: "for\r\nthe desk".into(),
        }
    }

    fn check(change: impl FnOnce(&mut Draft), expected: Option<&str>) {
        let mut draft = draft();
        change(&mut draft);
        let field = draft.clone().parse().err().map(|invalid| invalid.field);
        assert_eq!(field, expected, "{draft:?}");
    }

    #[test]
    fn a_draft_is_tidied_up() {
        let order = draft().parse().unwrap();
        assert_eq!((order.item.as_str(), order.note.as_str()), ("lamp", "for\nthe desk"));
        assert_eq!(order.amount.to_string(), "120.50");
        let drawn = Draft { id: String::new(), ..draft() }.parse().unwrap();
        assert!(is_id(&drawn.id) && drawn.id != order.id);
    }

    #[test]
    fn every_field_has_its_limits() {
        check(|draft| draft.id = "a/b".into(), Some("id"));
        check(|draft| draft.id = "x".repeat(64), None);
        check(|draft| draft.id = "x".repeat(65), Some("id"));
        check(|draft| draft.item = "  ".into(), Some("item"));
        check(|draft| draft.item = "灯".repeat(200), None);
        check(|draft| draft.item = "灯".repeat(201), Some("item"));
        check(|draft| draft.item = "two\nlines".into(), Some("item"));
        check(|draft| draft.amount = "0.00".into(), Some("amount"));
        check(|draft| draft.amount = "a lot".into(), Some("amount"));
        check(|draft| draft.requester = "x".repeat(81), Some("requester"));
        check(|draft| draft.note = "x".repeat(2_001), Some("note"));
        check(|draft| draft.note = "\u{1b}[2J".into(), Some("note"));
    }
}
