//! JSON for programs.
//!
//! | request | answers |
//! | --- | --- |
//! | `POST /api/orders` | 201, or 200 for a repetition; 409 when the id is taken; 422 |
//! | `GET /api/orders` | 200 |
//! | `GET /api/orders/{id}` | 200; 404 |
//! | `POST /api/orders/{id}/approve`, `/reject`, `/withdraw` | 200 when it counts; 404; 409 when the order is decided; 422 |
//! | `POST /api/orders/{id}/stop` | 200; 404; 409 when the order is closed; 422 |
//!
//! A request with an `id` may be sent again until it is answered. 503 asks for that; so does a lost connection.

use std::sync::Weak;

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::json;

use super::{open, status};
use crate::desk::{Desk, Refusal};
use crate::order::Draft;
use crate::verdict::{Reply, Word};

/// The answer to a request that is not carried out.
pub(crate) enum ApiError {
    Refused(Refusal),
    Unread(JsonRejection),
}

type Answer = Result<Response, ApiError>;
type Body<T> = Result<Json<T>, JsonRejection>;

pub(super) async fn submit(State(desk): State<Weak<Desk>>, draft: Body<Draft>) -> Answer {
    let Json(draft) = draft?;
    let (entry, is_new) = open(&desk)?.submit(draft).await?;
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    let location = format!("/api/orders/{}", entry.order.id);
    Ok((status, [(header::LOCATION, location)], Json(entry)).into_response())
}

pub(super) async fn list(State(desk): State<Weak<Desk>>) -> Answer {
    shown(&open(&desk)?.lists().await?)
}

pub(super) async fn look(State(desk): State<Weak<Desk>>, Path(id): Path<String>) -> Answer {
    shown(&open(&desk)?.dossier(&id).await?)
}

pub(super) async fn approve(State(desk): State<Weak<Desk>>, Path(id): Path<String>, reply: Body<Reply>) -> Answer {
    answer(&desk, &id, Word::Approve, reply).await
}

pub(super) async fn reject(State(desk): State<Weak<Desk>>, Path(id): Path<String>, reply: Body<Reply>) -> Answer {
    answer(&desk, &id, Word::Reject, reply).await
}

pub(super) async fn withdraw(State(desk): State<Weak<Desk>>, Path(id): Path<String>, reply: Body<Reply>) -> Answer {
    answer(&desk, &id, Word::Withdraw, reply).await
}

pub(super) async fn stop(State(desk): State<Weak<Desk>>, Path(id): Path<String>, reply: Body<Reply>) -> Answer {
    let Json(reply) = reply?;
    shown(&open(&desk)?.stop(&id, reply).await?)
}

async fn answer(desk: &Weak<Desk>, id: &str, word: Word, reply: Body<Reply>) -> Answer {
    let Json(reply) = reply?;
    shown(&open(desk)?.answer(id, word, reply).await?)
}

fn shown<T: Serialize>(value: &T) -> Answer {
    Ok(Json(value).into_response())
}

/// An error as JSON.
pub(super) fn refused(status: StatusCode, error: &str, field: Option<&str>) -> Response {
    let mut response = (status, Json(json!({ "error": error, "field": field }))).into_response();
    if status == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        match self {
            Self::Refused(refusal) => {
                let field = match &refusal {
                    Refusal::Invalid(invalid) => Some(invalid.field),
                    _ => None,
                };
                refused(status(&refusal), &refusal.to_string(), field)
            }
            Self::Unread(rejection) => refused(rejection.status(), &rejection.body_text(), None),
        }
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<JsonRejection> for ApiError {
    fn from(rejection: JsonRejection) -> Self {
        Self::Unread(rejection)
    }
}
