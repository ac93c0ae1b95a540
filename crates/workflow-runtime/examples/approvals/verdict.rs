//! What people answer to an order: the signals that its run waits for.

use serde::{Deserialize, Serialize};

use crate::order::{Invalid, MAX_NAME_LEN, check_line, check_text, draw_id, is_id};

/// An answer to an order. It is the payload of a signal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Verdict {
    /// Tells a repetition, such as the second click of a double click, from another answer.
    pub(crate) id: String,
    pub(crate) word: Word,
    pub(crate) by: String,
    pub(crate) comment: String,
    pub(crate) at_ms: u64,
}

/// What an answer says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Word {
    Approve,
    Reject,
    Withdraw,
}

/// An answer as it is sent, not yet looked at.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Reply {
    /// Chosen by a sender who may have to send it again; drawn here when it is empty.
    pub(crate) id: String,
    pub(crate) by: String,
    pub(crate) comment: String,
}

impl Word {
    /// The correlation key on which it reaches the run of an order.
    pub(crate) fn key(self, order: &str) -> String {
        match self {
            Self::Approve | Self::Reject => decision_key(order),
            Self::Withdraw => withdrawal_key(order),
        }
    }
}

/// On which the approver or the manager answers.
pub(crate) fn decision_key(order: &str) -> String {
    format!("order/{order}/decision")
}

/// On which the requester takes an order back.
pub(crate) fn withdrawal_key(order: &str) -> String {
    format!("order/{order}/withdrawn")
}

impl Reply {
    /// The reply with its limits checked, and an id.
    pub(crate) fn parse(self) -> Result<Self, Invalid> {
        let reply = Self {
            id: if self.id.is_empty() { draw_id() } else { self.id },
            by: self.by.trim().to_owned(),
            comment: self.comment.trim().replace("\r\n", "\n"),
        };
        if !is_id(&reply.id) {
            return Err(Invalid { field: "id", problem: "1 to 64 letters, digits and hyphens".to_owned() });
        }
        check_line("by", &reply.by, MAX_NAME_LEN)?;
        check_text("comment", &reply.comment)?;
        Ok(reply)
    }

    /// What it says to an order, said now.
    pub(crate) fn verdict(self, word: Word, at_ms: u64) -> Verdict {
        Verdict { id: self.id, word, by: self.by, comment: self.comment, at_ms }
    }
}
