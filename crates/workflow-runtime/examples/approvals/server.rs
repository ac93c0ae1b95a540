//! Opening the store, serving, and stopping so that nothing that was begun is torn off.

use std::future::IntoFuture;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use workflow_runtime::{HistoryLevel, Settings, open};

use crate::approval::Approval;
use crate::clerk::Clerk;
use crate::cli::Options;
use crate::desk::{Desk, Runtime};
use crate::failure::{Failure, INTERRUPTED, LISTEN, STORE};
use crate::{say, web};

/// How long the requests in hand, and then the steps, may go on after Ctrl-C.
const GRACE: Duration = Duration::from_secs(5);
/// No step takes long: people are waited for between steps.
const STEP_TIMEOUT: Duration = Duration::from_secs(30);
/// An order that is approved is to be paid, also by a provider that is out of service for hours. A process that dies in
/// a step uses up an attempt as well: with the usual five, an order would not survive a bad quarter of an hour.
const ATTEMPTS: u32 = 100;

/// Serves until Ctrl-C or SIGTERM.
pub(crate) async fn serve(options: &Options) -> anyhow::Result<()> {
    let storage = open(&url(&options.store)?).await?;
    let runtime =
        storage.runtime(Approval::new(options.terms.clone()), Clerk::new(storage.kv())).settings(settings()).build()?;
    let served = work(&runtime, options).await;
    drop(runtime);
    let closed = storage.close().await;
    // Why it stopped says more than why a store could not be closed after that.
    served?;
    Ok(closed?)
}

/// How the orders' runs are executed.
pub(crate) fn settings() -> Settings {
    Settings {
        history: HistoryLevel::Full,
        step_timeout: Some(STEP_TIMEOUT),
        shutdown_grace: GRACE,
        max_attempts_per_step: ATTEMPTS,
        ..Settings::default()
    }
}

async fn work(runtime: &Runtime, options: &Options) -> anyhow::Result<()> {
    let stop = stop_on_signal();
    let refuse = |error| Failure::new(LISTEN, format!("cannot listen on {}: {error}", options.listen));
    let listener = TcpListener::bind(options.listen).await.map_err(refuse)?;
    let address = listener.local_addr().map_err(refuse)?;

    let drained = CancellationToken::new();
    let mut running = pin!(runtime.spawn(drained.clone().cancelled_owned()).wait());
    // A client that keeps its connection open keeps a router, but no store.
    let desk = Arc::new(Desk::new(runtime.clone()));
    let server = axum::serve(listener, web::router(Arc::downgrade(&desk)));
    let mut server = tokio::spawn(server.with_graceful_shutdown(stop.clone().cancelled_owned()).into_future());
    say(&format!("listening on http://{address}"));

    tokio::select! {
        biased;
        () = stop.cancelled() => {}
        ended = &mut running => {
            // The store was taken away: no request can be answered any more.
            ended?;
            return Ok(());
        }
    }
    // Requests first: the answers that they wait for come from steps.
    if tokio::time::timeout(GRACE, &mut server).await.is_err() {
        server.abort();
    }
    drop(desk);
    drained.cancel();
    Ok(running.await?)
}

/// Fires at the first Ctrl-C or SIGTERM. The second one ends the process at once, which loses nothing that was
/// acknowledged.
fn stop_on_signal() -> CancellationToken {
    let stop = CancellationToken::new();
    let fired = stop.clone();
    tokio::spawn(async move {
        let mut asked = 0;
        while wait_for_signal().await {
            asked += 1;
            if asked > 1 {
                eprintln!("stopped at once");
                std::process::exit(i32::from(INTERRUPTED));
            }
            eprintln!("finishing what is in hand; Ctrl-C again stops at once");
            fired.cancel();
        }
    });
    stop
}

/// Waits for Ctrl-C or SIGTERM; `false` where there are no signals to wait for.
async fn wait_for_signal() -> bool {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let Ok(mut terminate) = signal(SignalKind::terminate()) else { return false };
        tokio::select! {
            asked = tokio::signal::ctrl_c() => asked.is_ok(),
            asked = terminate.recv() => asked.is_some(),
        }
    }
    #[cfg(not(unix))]
    {
        tokio::signal::ctrl_c().await.is_ok()
    }
}

/// Makes the folder of the store, and gives its address. Nothing else runs yet.
fn url(store: &Path) -> Result<String, Failure> {
    let refuse = |problem: String| Failure::new(STORE, format!("{} {problem}", store.display()));
    let path = std::fs::create_dir_all(store).and_then(|()| std::fs::canonicalize(store));
    let path = path.map_err(|error| refuse(format!("cannot be made: {error}")))?;
    url::Url::from_file_path(path).map(String::from).map_err(|()| refuse("is not a local folder".to_owned()))
}
