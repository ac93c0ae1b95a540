//! The command line: what the arguments ask for, and what is wrong with those that ask for nothing.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::approval::Terms;

/// The answer to `--help`.
pub(crate) const HELP: &str = "\
Serve purchase orders that wait for people, and outlive this process.

usage:
  approvals [--listen ADDR:PORT] [--store DIR] [options]

Prints its address. Open it in a browser, or use the JSON API below /api/orders.
Ctrl-C lets the requests and steps in hand finish, for a few seconds; a second
one stops at once. It may be killed at any moment: start it again, and every
order goes on where it was.

There is no authentication: whoever reaches the address is believed.

options:
  --listen ADDR:PORT      where to listen; port 0 takes a free one
                          (default: 127.0.0.1:8080)
  --store DIR             where orders live (default: .data/approvals)
  --remind-after TIME     from asking the approver to a reminder (default: 1d)
  --escalate-after TIME   from the reminder to asking a manager (default: 1d)
  --expire-after TIME     from asking the manager to the end (default: 3d)
  --approve-below AMOUNT  smaller orders are approved at once (default: 100)
  -h, --help              print this
  -V, --version           print the version

TIME is a number and a unit: 500ms, 60s, 5m, 2h, 1d. Waits that have begun keep
the time they began with.

exit codes:
  0 stopped as asked    2 wrong usage    3 the store cannot be used
  4 the address cannot be listened on    130 stopped by a second Ctrl-C";

const DAY: Duration = Duration::from_secs(24 * 3600);
/// Ten years: whoever wants more means something else.
const LONGEST: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// What the user asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Help,
    Version,
    Serve(Options),
}

/// How to serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) listen: SocketAddr,
    pub(crate) store: PathBuf,
    pub(crate) terms: Terms,
}

impl Default for Options {
    fn default() -> Self {
        let limit = "100".parse().expect("it is an amount");
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8080)),
            store: ".data/approvals".into(),
            terms: Terms { remind_after: DAY, escalate_after: DAY, expire_after: 3 * DAY, limit },
        }
    }
}

/// Reads the arguments that follow the program's name.
///
/// # Errors
///
/// What is wrong with them, in one line.
pub(crate) fn parse(args: impl IntoIterator<Item = String>) -> Result<Command, String> {
    let mut args = args.into_iter();
    let mut options = Options::default();
    while let Some(arg) = args.next() {
        let (name, inline) = match arg.split_once('=') {
            Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
            None => (arg, None),
        };
        match name.as_str() {
            "-h" | "--help" if inline.is_none() => return Ok(Command::Help),
            "-V" | "--version" if inline.is_none() => return Ok(Command::Version),
            "--listen" | "--store" | "--remind-after" | "--escalate-after" | "--expire-after" | "--approve-below" => {}
            name => return Err(format!("no option `{}`", name.escape_debug())),
        }
        let value = inline.or_else(|| args.next()).filter(|value| !value.is_empty());
        let value = value.ok_or_else(|| format!("{name} needs a value"))?;
        let refuse = |wanted: &str| format!("{name} needs {wanted}, not `{}`", value.escape_debug());
        let time = || parse_time(&value).ok_or_else(|| refuse("a time like 60s, 5m, 2h or 1d"));
        match name.as_str() {
            "--listen" => options.listen = value.parse().map_err(|_| refuse("an address like 127.0.0.1:8080"))?,
            "--store" => options.store = value.into(),
            "--remind-after" => options.terms.remind_after = time()?,
            "--escalate-after" => options.terms.escalate_after = time()?,
            "--expire-after" => options.terms.expire_after = time()?,
            _ => options.terms.limit = value.parse().map_err(|_| refuse("an amount like 100 or 99.50"))?,
        }
    }
    Ok(Command::Serve(options))
}

fn parse_time(text: &str) -> Option<Duration> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let unit_ms: u64 = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    let time = Duration::from_millis(number.parse::<u64>().ok()?.checked_mul(unit_ms)?);
    (time <= LONGEST).then_some(time)
}

#[cfg(test)]
mod tests {
    use super::{Command, Options, parse};

    fn check(line: &str, expected: Result<Command, &str>) {
        let parsed = parse(line.split_whitespace().map(str::to_owned));
        assert_eq!(parsed, expected.map_err(str::to_owned), "{line}");
    }

    #[test]
    fn without_arguments_it_serves_by_default() {
        check("", Ok(Command::Serve(Options::default())));
        check("--store x -h", Ok(Command::Help));
        check("-V", Ok(Command::Version));
    }

    #[test]
    fn options_are_read_with_a_blank_or_an_equals_sign() {
        let mut options = Options { listen: ([0, 0, 0, 0], 0).into(), store: "s".into(), ..Options::default() };
        options.terms.remind_after = std::time::Duration::from_millis(1_500);
        options.terms.escalate_after = std::time::Duration::from_secs(120);
        options.terms.expire_after = std::time::Duration::ZERO;
        options.terms.limit = "9.50".parse().unwrap();
        let line = "--listen=0.0.0.0:0 --store s --remind-after 1500ms --escalate-after=2m --expire-after 0s \
                    --approve-below 9.5";
        check(line, Ok(Command::Serve(options)));
    }

    #[test]
    fn a_wrong_line_is_refused_with_its_reason() {
        check("serve", Err("no option `serve`"));
        check("--help=yes", Err("no option `--help`"));
        check("--store", Err("--store needs a value"));
        check("--store=", Err("--store needs a value"));
        check("--listen 8080", Err("--listen needs an address like 127.0.0.1:8080, not `8080`"));
        check("--approve-below much", Err("--approve-below needs an amount like 100 or 99.50, not `much`"));
        for time in ["60", "s", "-1s", "1w", "4000d", "99999999999999999999s", "18446744073709551615d"] {
            let reason = format!("--remind-after needs a time like 60s, 5m, 2h or 1d, not `{time}`");
            check(&format!("--remind-after {time}"), Err(&reason));
        }
    }
}
