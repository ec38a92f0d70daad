//! Connections: HTTP/1.1 and HTTP/2 with prior knowledge, each a task; and how they end.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Version};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::app::{App, Options};
use crate::followed::Hangup;
use crate::gateway::Gateway;
use crate::half_sent::Prompt;
use crate::problem::Problem;
use crate::untaken::{Pieces, Untaken};

/// How far the life of a server has come. Ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// It serves.
    Serving,
    /// It answers what has come and accepts nothing more.
    Stopping,
    /// It ends without another word.
    Halted,
}

/// Serves on these listeners until the stage says otherwise, and all connections are closed.
pub async fn serve<G: Gateway>(
    listeners: Vec<TcpListener>,
    gateway: G,
    options: Options,
    mut stage: watch::Receiver<Stage>,
) {
    let stop = options.stop;
    let app = App::new(gateway, options);
    let mut accepting = JoinSet::new();
    for listener in listeners {
        accepting.spawn(accept(listener, app.clone(), stage.clone()));
    }
    reach(&mut stage, Stage::Stopping).await;
    let all_closed = async { while accepting.join_next().await.is_some() {} };
    tokio::select! {
        _ = timeout(stop, all_closed) => {}
        () = reach(&mut stage, Stage::Halted) => {}
    }
    // Dropped here with their tasks: who has not read its answer by now does not get it.
    accepting.shutdown().await;
}

/// Serves one connection, by whatever stream it comes, to its end.
pub async fn serve_stream<G: Gateway>(
    stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
    gateway: G,
    options: Options,
) {
    let (_serving, stage) = watch::channel(Stage::Serving);
    converse(stream, App::new(gateway, options), stage).await;
}

/// Accepts connections until the server stops, then waits for those that are open.
async fn accept<G: Gateway>(listener: TcpListener, app: App<G>, mut stage: watch::Receiver<Stage>) {
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = reach(&mut stage, Stage::Stopping) => break,
            Some(_) = connections.join_next() => continue,
        };
        let Ok((socket, _)) = accepted else {
            // Without descriptors or memory asking again at once would only burn the processor.
            sleep(PAUSE).await;
            continue;
        };
        // Closed at once where there are too many, as by every protocol.
        let Some(seat) = app.gateway.admit() else { continue };
        let (app, stage) = (app.clone(), stage.clone());
        // A socket that is gone already will tell when it is read.
        let _ = socket.set_nodelay(true);
        connections.spawn(async move {
            converse(socket, app, stage).await;
            drop(seat);
        });
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// One connection, to its end.
async fn converse<G: Gateway>(
    stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
    app: App<G>,
    mut stage: watch::Receiver<Stage>,
) {
    let half_sent = app.options.half_sent;
    let hangup = Hangup::default();
    let closing = Arc::clone(&hangup);
    let untaken = Arc::new(Untaken::default());
    let watched = Arc::clone(&untaken);
    let asking = app.open.connection();
    let service = service_fn(move |request: Request<Incoming>| {
        let untaken = (request.version() == Version::HTTP_2).then(|| Arc::clone(&untaken));
        let admitted = asking.admit();
        // Apart: hyper keeps as much as the future takes until the answer is taken.
        let answer = admitted.is_some().then(|| {
            let (app, hangup) = (app.clone(), Arc::clone(&hangup));
            Box::pin(async move { app.answer(request, hangup).await })
        });
        async move {
            let answer = match answer {
                Some(answer) => answer.await,
                None => Problem::busy().answer(),
            };
            Ok::<_, Infallible>(answer.map(|body| Pieces::new(body, untaken, admitted)))
        }
    });
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(half_sent);
    builder.http1().max_buf_size(HEAD_BYTES_MAX).max_headers(HEADERS_MAX);
    builder.http2().timer(TokioTimer::new()).max_concurrent_streams(STREAMS_MAX);
    builder.http2().max_header_list_size(HEAD_BYTES_MAX as u32);
    builder.http2().initial_stream_window_size(WINDOW_BYTES);
    builder.http2().initial_connection_window_size(WINDOW_BYTES);
    let connection =
        builder.serve_connection(TokioIo::new(Prompt::new(stream, half_sent)), service);
    tokio::pin!(connection);
    let mut is_stopping = false;
    loop {
        tokio::select! {
            // How a connection ended is its peer's business: what it asked was done or was not.
            _ = connection.as_mut() => return,
            () = closing.notified() => return,
            () = watched.reach(half_sent) => return,
            () = reach(&mut stage, Stage::Stopping), if !is_stopping => {
                is_stopping = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    }
}

/// Ends when the server has come so far, or is gone.
async fn reach(stage: &mut watch::Receiver<Stage>, wanted: Stage) {
    // An error says that the server is gone, which is further than any stage.
    let _ = stage.wait_for(|stage| *stage >= wanted).await;
}

/// How long accepting rests when the system has no room.
const PAUSE: Duration = Duration::from_millis(100);

/// Headers of a request by HTTP/1.1: a hundred properties, and what clients send besides.
const HEADERS_MAX: usize = 160;

/// Bytes of a request before its body. A connection by HTTP/1.1 keeps a buffer of this size once so
/// much came at once, whatever it was.
const HEAD_BYTES_MAX: usize = 12 * 1024;

/// Requests that one connection may have open by HTTP/2.
const STREAMS_MAX: u32 = 100;

/// What may come by HTTP/2 on one connection while nobody reads it: the protocol's own default.
/// Who waits for room does not read.
const WINDOW_BYTES: u32 = 65_535;
