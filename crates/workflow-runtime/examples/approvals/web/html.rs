//! The pages. Whatever people wrote goes through [`esc`], and nothing is loaded from anywhere.

mod style;

use std::fmt;
use std::fmt::Write as _;

use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};

use self::style::STYLE;
use super::when::utc;
use crate::desk::{Dossier, Lists};
use crate::ledger::{Entry, State};
use crate::order::{Draft, MAX_NAME_LEN, MAX_TEXT_LEN, draw_id};
use crate::verdict::Word;

/// Text as it stands in a page, also within quotes.
struct Esc<'a>(&'a str);

fn esc(text: &str) -> Esc<'_> {
    Esc(text)
}

impl fmt::Display for Esc<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

/// A page that says one thing.
pub(super) fn message(status: StatusCode, text: &str) -> Response {
    let body = format!("<h1>Purchase orders</h1>{}<p><a href=\"/\">All orders</a></p>", notice(Some(text)));
    page(status, "Purchase orders", &body)
}

/// The form for a new order, filled in with `draft`, and the orders.
pub(super) fn home(status: StatusCode, lists: &Lists, draft: &Draft, problem: Option<&str>) -> Response {
    let Draft { id, item, amount, requester, note } = draft;
    let body = format!(
        "<h1>Purchase orders</h1>{notice}\
         <section><h2>New order</h2><form method=\"post\" action=\"/orders\">\
         <input type=\"hidden\" name=\"id\" value=\"{id}\">\
         <label>Item <input name=\"item\" required maxlength=\"200\" value=\"{item}\"></label>\
         <label>Amount <input name=\"amount\" required inputmode=\"decimal\" placeholder=\"120.50\" maxlength=\"10\" \
         value=\"{amount}\"></label>\
         <label>Requester <input name=\"requester\" required maxlength=\"{MAX_NAME_LEN}\" value=\"{requester}\"></label>\
         <label>Note <textarea name=\"note\" rows=\"2\" maxlength=\"{MAX_TEXT_LEN}\">\n{note}</textarea></label>\
         <button>Submit order</button></form></section>\
         <section><h2>Open</h2>{open}</section><section><h2>Closed</h2>{closed}</section>",
        notice = notice(problem),
        id = esc(id),
        item = esc(item),
        amount = esc(amount),
        requester = esc(requester),
        note = esc(note),
        open = table(&lists.open, "Nothing waits for a decision."),
        closed = table(&lists.closed, "No order has been closed yet."),
    );
    page(status, "Purchase orders", &body)
}

/// Everything about an order, and what can be done with it.
pub(super) fn order(status: StatusCode, dossier: &Dossier, problem: Option<&str>) -> Response {
    let Entry { order, state, .. } = &dossier.entry;
    let body = format!(
        "<p><a href=\"/\">All orders</a></p><h1>{item} {badge}</h1>{notice}{facts}{actions}\
         <section><h2>Messages</h2>{messages}</section><section><h2>Steps</h2>{steps}</section>",
        item = esc(&order.item),
        badge = badge(*state),
        notice = notice(problem),
        facts = facts(dossier),
        actions = actions(&dossier.entry),
        messages = messages(dossier),
        steps = steps(dossier),
    );
    page(status, &format!("{} – purchase order", order.item), &body)
}

fn page(status: StatusCode, title: &str, body: &str) -> Response {
    let title = esc(title);
    let html = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <link rel=\"icon\" href=\"data:,\"><style>{STYLE}</style></head><body><main>{body}</main></body></html>\n"
    );
    (status, Html(html)).into_response()
}

fn notice(problem: Option<&str>) -> String {
    let Some(problem) = problem else { return String::new() };
    let mut rest = problem.chars();
    let problem: String = rest.next().into_iter().flat_map(char::to_uppercase).chain(rest).collect();
    format!("<p class=\"notice\" role=\"alert\">{}</p>", esc(&problem))
}

fn badge(state: State) -> String {
    let (kind, text) = match state {
        State::Submitted => ("open", "submitted"),
        State::Asked => ("open", "waits for the approver"),
        State::Reminded => ("late", "approver reminded"),
        State::Escalated => ("late", "waits for the manager"),
        State::Approved => ("open", "approved, to be paid"),
        State::Paid => ("good", "approved and paid"),
        State::Rejected => ("bad", "rejected"),
        State::Withdrawn => ("off", "withdrawn"),
        State::Expired => ("bad", "expired"),
        State::Stopped => ("off", "stopped"),
        State::Failed => ("bad", "failed"),
    };
    format!("<span class=\"badge {kind}\">{text}</span>")
}

fn table(entries: &[Entry], none: &str) -> String {
    if entries.is_empty() {
        return format!("<p class=\"none\">{none}</p>");
    }
    let rows = entries.iter().map(|entry| {
        let Entry { order, state, submitted_ms, .. } = entry;
        format!(
            "<tr><td><a href=\"/orders/{id}\">{item}</a></td><td>{badge}</td><td class=\"number\">{amount}</td>\
             <td>{requester}</td><td class=\"time\">{at}</td></tr>",
            id = esc(&order.id),
            item = esc(&order.item),
            amount = order.amount,
            requester = esc(&order.requester),
            badge = badge(*state),
            at = utc(*submitted_ms),
        )
    });
    let head =
        "<tr><th>Item</th><th>State</th><th class=\"number\">Amount</th><th>Requester</th><th>Submitted</th></tr>";
    format!("<div class=\"wide\"><table>{head}{}</table></div>", rows.collect::<String>())
}

fn facts(dossier: &Dossier) -> String {
    let Entry { order, state, submitted_ms, verdict, closed_ms, reason } = &dossier.entry;
    let mut facts = vec![
        ("Number", esc(&order.id).to_string()),
        ("Amount", order.amount.to_string()),
        ("Requester", esc(&order.requester).to_string()),
        ("Submitted", utc(*submitted_ms)),
    ];
    if !order.note.is_empty() {
        facts.push(("Note", esc(&order.note).to_string()));
    }
    if let Some(until) = dossier.waits_until_ms {
        let next = match state {
            State::Asked => "Reminder at",
            State::Reminded => "Goes to the manager at",
            _ => "Expires at",
        };
        facts.push((next, utc(until)));
    }
    if let Some(verdict) = verdict {
        let said = match verdict.word {
            Word::Approve => "Approved by",
            Word::Reject => "Rejected by",
            Word::Withdraw => "Withdrawn by",
        };
        facts.push((said, format!("{}, {}", esc(&verdict.by), utc(verdict.at_ms))));
        if !verdict.comment.is_empty() {
            facts.push(("Comment", esc(&verdict.comment).to_string()));
        }
    }
    for payment in &dossier.payments {
        facts.push(("Paid", format!("{}, receipt {}", payment.amount, esc(&payment.receipt))));
    }
    if let Some(reason) = reason {
        facts.push(("Reason", esc(reason).to_string()));
    }
    if let Some(closed) = closed_ms {
        facts.push(("Closed", utc(*closed)));
    }
    let rows = facts.into_iter().map(|(name, value)| format!("<dt>{name}</dt><dd>{value}</dd>"));
    format!("<dl>{}</dl>", rows.collect::<String>())
}

/// The forms of an open order. Each page view has ids of its own: a double click sends one twice, and counts once.
fn actions(entry: &Entry) -> String {
    let id = esc(&entry.order.id);
    let fields = |comment: &str| {
        format!(
            "<input type=\"hidden\" name=\"id\" value=\"{}\">\
             <label>Your name <input name=\"by\" required maxlength=\"{MAX_NAME_LEN}\"></label>\
             <label>{comment} <textarea name=\"comment\" rows=\"2\" maxlength=\"{MAX_TEXT_LEN}\"></textarea></label>",
            draw_id()
        )
    };
    let mut actions = String::new();
    if entry.state.is_undecided() {
        let _ = write!(
            actions,
            "<section><h2>Decide</h2><form method=\"post\" action=\"/orders/{id}/decision\">\
             <fieldset><legend>Decision</legend>\
             <label class=\"choice\"><input type=\"radio\" name=\"word\" value=\"approve\" required> Approve</label>\
             <label class=\"choice\"><input type=\"radio\" name=\"word\" value=\"reject\" required> Reject</label>\
             </fieldset>{}<button>Send decision</button></form></section>\
             <details><summary>Withdraw this order</summary>\
             <form method=\"post\" action=\"/orders/{id}/withdrawal\">{}<button>Withdraw</button></form></details>",
            fields("Comment"),
            fields("Why"),
        );
    }
    if entry.state.is_open() {
        let _ = write!(
            actions,
            "<details><summary>Stop this order, whatever it is doing</summary>\
             <form method=\"post\" action=\"/orders/{id}/stop\">{}<button>Stop</button></form></details>",
            fields("Why"),
        );
    }
    actions
}

fn messages(dossier: &Dossier) -> String {
    let messages = dossier.messages.iter().map(|message| {
        let (at, to, text) = (utc(message.at_ms), esc(&message.to), esc(&message.text));
        format!("<li><span class=\"time\">{at}</span> to <b>{to}</b>: {text}</li>")
    });
    list("<ol>", &messages.collect::<String>())
}

fn steps(dossier: &Dossier) -> String {
    let steps = dossier.steps.iter().map(|step| {
        let woken = match step.woken_by.as_deref().and_then(|key| key.rsplit('/').next()) {
            Some("withdrawn") => " (a withdrawal came)",
            Some(_) => " (a decision came)",
            None if step.name == "hear" => " (the time was over)",
            None => "",
        };
        let at = utc(step.ended_ms);
        format!("<li><span class=\"time\">{at}</span> <b>{}</b>{woken}: {}</li>", step.name, step.end)
    });
    list("<ol start=\"0\">", &steps.collect::<String>())
}

fn list(start: &str, items: &str) -> String {
    if items.is_empty() {
        return "<p class=\"none\">None yet; load the page again in a moment.</p>".to_owned();
    }
    format!("{start}{items}</ol>")
}

#[cfg(test)]
mod tests;
