//! Pages for people: a form is answered by a redirect to the page that shows what came of it, so that loading it again
//! sends nothing. They work without scripts.

use std::sync::Weak;

use axum::Form;
use axum::extract::rejection::FormRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use serde::Deserialize;

use super::{html, open, status};
use crate::desk::{Desk, Refusal};
use crate::order::{Draft, draw_id};
use crate::verdict::{Reply, Word};

type Body<T> = Result<Form<T>, FormRejection>;

/// The decision as its form sends it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Decision {
    id: String,
    word: Choice,
    by: String,
    comment: String,
}

/// What an approver can choose.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Choice {
    Approve,
    Reject,
}

pub(super) async fn home(State(desk): State<Weak<Desk>>) -> Response {
    shown_home(&desk, StatusCode::OK, &Draft { id: draw_id(), ..Draft::default() }, None).await
}

pub(super) async fn submit(State(desk): State<Weak<Desk>>, draft: Body<Draft>) -> Response {
    let Form(draft) = match draft {
        Ok(draft) => draft,
        Err(rejection) => return html::message(rejection.status(), &rejection.body_text()),
    };
    let kept = draft.clone();
    let submitted = async { open(&desk)?.submit(draft).await };
    match submitted.await {
        Ok((entry, _)) => Redirect::to(&format!("/orders/{}", entry.order.id)).into_response(),
        Err(refusal) => shown_home(&desk, status(&refusal), &kept, Some(&refusal.to_string())).await,
    }
}

async fn shown_home(desk: &Weak<Desk>, status: StatusCode, draft: &Draft, problem: Option<&str>) -> Response {
    let lists = async { open(desk)?.lists().await };
    match lists.await {
        Ok(lists) => html::home(status, &lists, draft, problem),
        Err(refusal) => refused(&refusal),
    }
}

pub(super) async fn look(State(desk): State<Weak<Desk>>, Path(id): Path<String>) -> Response {
    shown_order(&desk, &id, StatusCode::OK, None).await
}

pub(super) async fn decide(State(desk): State<Weak<Desk>>, Path(id): Path<String>, form: Body<Decision>) -> Response {
    let Form(Decision { id: reply_id, word, by, comment }) = match form {
        Ok(form) => form,
        Err(rejection) => return shown_order(&desk, &id, rejection.status(), Some(&rejection.body_text())).await,
    };
    let word = match word {
        Choice::Approve => Word::Approve,
        Choice::Reject => Word::Reject,
    };
    let reply = Reply { id: reply_id, by, comment };
    let answered = async { open(&desk)?.answer(&id, word, reply).await.map(drop) };
    after(&desk, &id, answered.await).await
}

pub(super) async fn withdraw(State(desk): State<Weak<Desk>>, Path(id): Path<String>, form: Body<Reply>) -> Response {
    let Form(reply) = match form {
        Ok(form) => form,
        Err(rejection) => return shown_order(&desk, &id, rejection.status(), Some(&rejection.body_text())).await,
    };
    let answered = async { open(&desk)?.answer(&id, Word::Withdraw, reply).await.map(drop) };
    after(&desk, &id, answered.await).await
}

pub(super) async fn stop(State(desk): State<Weak<Desk>>, Path(id): Path<String>, form: Body<Reply>) -> Response {
    let Form(reply) = match form {
        Ok(form) => form,
        Err(rejection) => return shown_order(&desk, &id, rejection.status(), Some(&rejection.body_text())).await,
    };
    let stopped = async { open(&desk)?.stop(&id, reply).await.map(drop) };
    after(&desk, &id, stopped.await).await
}

/// Goes on to the order's page, or shows it with what was wrong.
async fn after(desk: &Weak<Desk>, id: &str, done: Result<(), Refusal>) -> Response {
    match done {
        Ok(()) => Redirect::to(&format!("/orders/{id}")).into_response(),
        Err(refusal) => shown_order(desk, id, status(&refusal), Some(&refusal.to_string())).await,
    }
}

async fn shown_order(desk: &Weak<Desk>, id: &str, status: StatusCode, problem: Option<&str>) -> Response {
    let dossier = async { open(desk)?.dossier(id).await };
    match dossier.await {
        Ok(dossier) => html::order(status, &dossier, problem),
        Err(refusal) => refused(&refusal),
    }
}

fn refused(refusal: &Refusal) -> Response {
    html::message(status(refusal), &refusal.to_string())
}
