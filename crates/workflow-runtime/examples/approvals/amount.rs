//! Money: whole cents, and how they are written.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// An amount of money in cents. It is written `120.50` everywhere: in forms, in JSON, in the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Amount(u64);

/// The largest amount of an order.
pub(crate) const MAX_AMOUNT: Amount = Amount(100_000_000);

const RULE: &str = "a number like 120 or 120.50, up to 1000000";

impl Amount {
    pub(crate) fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl FromStr for Amount {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (whole, cents) = text.split_once('.').unwrap_or((text, "0"));
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(whole) || !is_number(cents) || whole.len() > 7 || cents.len() > 2 {
            return Err(RULE);
        }
        let whole: u64 = whole.parse().map_err(|_| RULE)?;
        let cents: u64 = format!("{cents:0<2}").parse().map_err(|_| RULE)?;
        let amount = Self(whole * 100 + cents);
        if amount > MAX_AMOUNT { Err(RULE) } else { Ok(amount) }
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:02}", self.0 / 100, self.0 % 100)
    }
}

impl TryFrom<String> for Amount {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Amount> for String {
    fn from(amount: Amount) -> Self {
        amount.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::{Amount, RULE};

    fn check(text: &str, expected: Result<&str, &str>) {
        let amount = text.parse::<Amount>().map(|amount| amount.to_string());
        assert_eq!(amount.as_deref().map_err(|rule| *rule), expected, "{text:?}");
    }

    #[test]
    fn amounts_are_read_to_the_cent() {
        check("120", Ok("120.00"));
        check("120.5", Ok("120.50"));
        check("0.07", Ok("0.07"));
        check("0000001.00", Ok("1.00"));
        check("1000000", Ok("1000000.00"));
    }

    #[test]
    fn what_is_no_amount_is_refused() {
        let wrong = ["", ".", "1.", ".5", "-1", "+1", "1,5", "1.234", "1e3", "1 000", "٣", "1000000.01", "99999999"];
        for text in wrong {
            check(text, Err(RULE));
        }
    }
}
