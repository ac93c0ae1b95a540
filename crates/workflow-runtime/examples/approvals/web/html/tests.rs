//! Pages hold what people wrote as text, and nothing else of it.

use axum::body::to_bytes;
use axum::http::StatusCode;
use axum::response::Response;

use super::{home, message, order};
use crate::desk::{Dossier, Lists, StepLine};
use crate::ledger::{Entry, Message, Payment, State};
use crate::order::{Draft, Order};
use crate::verdict::{Verdict, Word};

const EVIL: &str = "</textarea><script>alert('1')</script>\"><img src=x onerror=alert(2)>&amp;";

async fn text(page: Response) -> String {
    let body = to_bytes(page.into_body(), usize::MAX).await.unwrap();
    String::from_utf8(body.to_vec()).unwrap()
}

fn entry(state: State) -> Entry {
    let evil = || EVIL.to_owned();
    let amount = "120.50".parse().unwrap();
    let order = Order { id: evil(), item: evil(), amount, requester: evil(), note: evil() };
    let verdict = Verdict { id: evil(), word: Word::Reject, by: evil(), comment: evil(), at_ms: 0 };
    Entry { state, verdict: Some(verdict), reason: Some(evil()), ..Entry::new(order, 0) }
}

fn dossier(state: State) -> Dossier {
    Dossier {
        entry: entry(state),
        waits_until_ms: Some(1_000),
        steps: vec![StepLine { step: 0, name: "ask", woken_by: Some(EVIL.into()), end: "went on", ended_ms: 0 }],
        messages: vec![Message { to: EVIL.into(), text: EVIL.into(), at_ms: 0 }],
        payments: vec![Payment { receipt: EVIL.into(), amount: "120.50".parse().unwrap() }],
    }
}

fn check_harmless(page: &str) {
    for part in ["<script", "<img", "alert('", "</textarea><script", "\"><img"] {
        assert!(!page.contains(part), "{part} in {page}");
    }
    assert!(page.contains("&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&quot;&gt;"));
    assert!(page.contains("&gt;&amp;amp;"));
    for part in ["http:", "https:", "src=\"", "url(", "@import", "javascript:"] {
        assert!(!page.contains(part), "a page loads nothing: {part}");
    }
}

#[tokio::test]
async fn whatever_people_write_is_shown_and_never_obeyed() {
    let lists = Lists { open: vec![entry(State::Asked)], closed: vec![entry(State::Stopped)] };
    let evil = || EVIL.to_owned();
    let draft = Draft { id: evil(), item: evil(), amount: evil(), requester: evil(), note: evil() };
    check_harmless(&text(home(StatusCode::OK, &lists, &draft, Some(EVIL))).await);
    for state in [State::Asked, State::Approved, State::Failed] {
        check_harmless(&text(order(StatusCode::OK, &dossier(state), Some(EVIL))).await);
    }
    check_harmless(&text(message(StatusCode::NOT_FOUND, EVIL)).await);
}

#[tokio::test]
async fn an_order_offers_what_can_still_be_done_with_it() {
    for (state, decide, stop) in
        [(State::Escalated, true, true), (State::Approved, false, true), (State::Paid, false, false)]
    {
        let page = text(order(StatusCode::OK, &dossier(state), None)).await;
        assert_eq!((page.contains("Send decision"), page.contains(">Withdraw<")), (decide, decide), "{state:?}");
        assert_eq!(page.contains(">Stop<"), stop, "{state:?}");
    }
}
