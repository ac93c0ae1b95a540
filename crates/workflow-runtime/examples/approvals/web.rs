//! HTTP: which request goes where, and what holds for all of them.

mod api;
mod html;
mod pages;
mod when;

use std::sync::{Arc, Weak};
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use workflow_runtime::{StepError, StepErrorKind};

use crate::desk::{Desk, Refusal};

/// The largest request.
const MAX_BODY: usize = 16 * 1024;
/// A client that sends its request more slowly than this has gone away.
const TIMEOUT: Duration = Duration::from_secs(15);
/// A page loads nothing and sends its forms to where it came from.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'self'; \
                      frame-ancestors 'none'; base-uri 'none'";

/// All routes. The desk is gone once the server stops.
pub(crate) fn router(desk: Weak<Desk>) -> Router {
    Router::new()
        .route("/", get(pages::home))
        .route("/orders", post(pages::submit))
        .route("/orders/{id}", get(pages::look))
        .route("/orders/{id}/decision", post(pages::decide))
        .route("/orders/{id}/withdrawal", post(pages::withdraw))
        .route("/orders/{id}/stop", post(pages::stop))
        .route("/api/orders", get(api::list).post(api::submit))
        .route("/api/orders/{id}", get(api::look))
        .route("/api/orders/{id}/approve", post(api::approve))
        .route("/api/orders/{id}/reject", post(api::reject))
        .route("/api/orders/{id}/withdraw", post(api::withdraw))
        .route("/api/orders/{id}/stop", post(api::stop))
        .fallback(nowhere)
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .layer(from_fn(guard))
        .with_state(desk)
}

/// What holds for every request: it comes from our own pages or from a program, it ends, and nobody keeps its answer.
async fn guard(request: Request, next: Next) -> Response {
    let site = request.headers().get("sec-fetch-site").and_then(|site| site.to_str().ok());
    let is_foreign = matches!(site, Some("cross-site" | "same-site"));
    let mut response = if is_foreign && request.method() == Method::POST {
        (StatusCode::FORBIDDEN, "another site may not send this\n").into_response()
    } else {
        let answer = tokio::time::timeout(TIMEOUT, next.run(request)).await;
        answer.unwrap_or_else(|_| (StatusCode::REQUEST_TIMEOUT, "it took too long\n").into_response())
    };
    let fixed = [
        (header::CACHE_CONTROL, "no-store"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::REFERRER_POLICY, "same-origin"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    for (name, value) in fixed {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

async fn nowhere(request: Request) -> Response {
    if request.uri().path().starts_with("/api/") {
        return api::refused(StatusCode::NOT_FOUND, "there is nothing here", None);
    }
    html::message(StatusCode::NOT_FOUND, "There is nothing here.")
}

/// The desk, for as long as the server runs.
fn open(desk: &Weak<Desk>) -> Result<Arc<Desk>, Refusal> {
    desk.upgrade().ok_or_else(|| Refusal::Failed(StepError::transient("the server stops")))
}

/// The status of a refusal. What went wrong inside is for the log.
fn status(refusal: &Refusal) -> StatusCode {
    match refusal {
        Refusal::Invalid(_) => StatusCode::UNPROCESSABLE_ENTITY,
        Refusal::NotFound => StatusCode::NOT_FOUND,
        Refusal::Conflict(_) => StatusCode::CONFLICT,
        Refusal::Later => StatusCode::SERVICE_UNAVAILABLE,
        Refusal::Failed(error) => {
            eprintln!("warning: a request failed: {}", error.message.escape_debug());
            match error.kind {
                StepErrorKind::Permanent => StatusCode::INTERNAL_SERVER_ERROR,
                _ => StatusCode::SERVICE_UNAVAILABLE,
            }
        }
    }
}
