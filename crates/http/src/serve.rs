//! Connections: HTTP/1.1 and HTTP/2 with prior knowledge, each a task; and how they end.

use std::convert::Infallible;
use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response, Version};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use input::{Admission, Entrance};
use model::Introduction;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Mutex, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_rustls::server::TlsStream;

use crate::activity::{Activity, Overdue, Timeouts};
use crate::app::{App, Options, Peer, SharedPermit};
use crate::byte_share::Hangup;
use crate::departure::{Asker, Socket};
use crate::gateway::{ConnectionPermit as _, Gateway, NewConnection};
use crate::guard::guarded;
use crate::half_sent::WatchedStream;
use crate::problem::Problem;
use crate::send_timeout::Pieces;
use crate::socket::{Listener, Stream, TlsConfig};

/// How far the life of a server has come. Ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// It serves.
    Serving,
    /// It answers the requests that have come and accepts nothing more.
    Stopping,
    /// It ends without another word.
    Halted,
}

/// Serves on these listeners until the stage says otherwise, and all connections are closed.
pub async fn serve<G: Gateway>(
    listeners: Vec<Listener>,
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
    tokio::select! {
        () = reach(&mut stage, Stage::Stopping) => {}
        () = app.sample() => {}
    }
    let all_closed = async { while accepting.join_next().await.is_some() {} };
    tokio::select! {
        _ = timeout(stop, all_closed) => {}
        () = reach(&mut stage, Stage::Halted) => {}
    }
    // Dropped here with their tasks: a client that has not read its answer by now does not get it.
    accepting.shutdown().await;
}

/// Serves one connection of this machine, by any kind of stream, to its end.
pub async fn serve_stream<G: Gateway>(
    stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
    gateway: G,
    options: Options,
) {
    let (_serving, stage) = watch::channel(Stage::Serving);
    let app = App::new(gateway, options);
    let peer = Peer {
        over_loopback: true,
        address: None,
        offer: app.gateway.offer(true, &Introduction::Unknown),
        certificate: None,
        introduction: Introduction::Unknown,
        hangup: Hangup::default(),
        asker: Asker::default(),
        permit: SharedPermit::new(()),
    };
    tokio::select! {
        () = converse(stream, peer, pending(), app.clone(), stage) => {}
        () = app.sample() => {}
    }
}

/// Accepts connections until the server stops, then waits for those that are open.
async fn accept<G: Gateway>(listener: Listener, app: App<G>, mut stage: watch::Receiver<Stage>) {
    let mut connections = JoinSet::new();
    let turnstile = Arc::new(Mutex::new(()));
    let Listener { tls, admission, .. } = &listener;
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = reach(&mut stage, Stage::Stopping) => break,
            Some(_) = connections.join_next() => continue,
        };
        let Ok((socket, address)) = accepted else {
            // Without descriptors or memory asking again at once would only burn the processor.
            sleep(PAUSE).await;
            continue;
        };
        let entrance = admission.entrance(address);
        if entrance == Entrance::Closed {
            app.gateway.turn_away(tls.is_some(), address);
            continue;
        }
        let (is_local, hangup) = (socket.is_local(), Hangup::default());
        let connection = NewConnection {
            peer: address,
            is_proxy: entrance != Entrance::Client,
            is_local,
            hangup: Arc::downgrade(&hangup),
        };
        // Closed at once if there are too many, as by every protocol.
        let Some(permit) = app.gateway.admit(connection) else { continue };
        let arrival = Arrival { socket, address, is_local, entrance, hangup, permit };
        let (tls, turnstile) = (tls.clone(), Arc::clone(&turnstile));
        let place = Place { admission: Arc::clone(admission), tls, turnstile };
        connections.spawn(meet(arrival, place, app.clone(), stage.clone()));
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// A connection that was accepted and has a permit.
struct Arrival<P> {
    socket: Stream,
    address: Option<SocketAddr>,
    is_local: bool,
    entrance: Entrance,
    hangup: Hangup,
    permit: P,
}

/// The listener of a connection.
struct Place {
    admission: Arc<Admission>,
    tls: Option<TlsConfig>,
    turnstile: Arc<Mutex<()>>,
}

/// Serves an accepted connection: a proxy's header, TLS, requests.
async fn meet<G: Gateway>(
    mut arrival: Arrival<G::ConnectionPermit>,
    place: Place,
    app: App<G>,
    mut stage: watch::Receiver<Stage>,
) {
    let due = Instant::now() + GREETING_SPAN_MAX;
    let is_private = arrival.is_local || place.tls.is_some();
    if let Entrance::Proxy(proxy) = arrival.entrance {
        let hears = hear_proxy(&mut arrival, proxy, &place, &app.gateway, due, &mut stage);
        if !hears.await {
            return;
        }
    }
    let Arrival { socket, address, is_local, hangup, permit, .. } = arrival;
    let introduction = place.admission.introduction(socket.unix_user());
    let (socket, asker) = Socket::new(socket);
    let gone = socket.gone(asker.clone());
    let offer = app.gateway.offer(is_private, &introduction);
    let mut peer = Peer {
        over_loopback: is_local,
        address,
        offer,
        certificate: None,
        introduction,
        hangup,
        asker,
        permit: SharedPermit::new(permit),
    };
    // Each way apart: a connection takes the memory of the way that it goes, not of the longest.
    let Some(tls) = place.tls else {
        return Box::pin(converse(socket, peer, gone, app, stage)).await;
    };
    let greeting = greet(tls, socket, &place.turnstile, &peer, &app.gateway, due, &mut stage);
    let Some(stream) = Box::pin(greeting).await else { return };
    peer.show(stream.get_ref().1.peer_certificates());
    Box::pin(converse(stream, peer, gone, app, stage)).await;
}

/// Reads where the client of a proxy is. False: the connection is over.
async fn hear_proxy<G: Gateway>(
    arrival: &mut Arrival<G::ConnectionPermit>,
    proxy: SocketAddr,
    place: &Place,
    gateway: &G,
    due: Instant,
    stage: &mut watch::Receiver<Stage>,
) -> bool {
    let by_tls = place.tls.is_some();
    let heard = tokio::select! {
        heard = timeout_at(due, arrival.socket.read_proxy_header()) => heard,
        () = arrival.hangup.notified() => return false,
        () = reach(stage, Stage::Stopping) => return false,
    };
    let told = match heard {
        Ok(Ok(told)) => told,
        Ok(Err(error)) => {
            // Any other error says that the proxy has gone.
            let fault = error.get_ref().and_then(|error| error.downcast_ref());
            fault.into_iter().for_each(|it| gateway.header_failed(by_tls, proxy, Some(*it)));
            return false;
        }
        Err(_late) => {
            gateway.header_failed(by_tls, proxy, None);
            return false;
        }
    };
    let client = told.client(proxy);
    if !place.admission.admits_proxied(told, proxy) {
        gateway.turn_away(by_tls, Some(client));
        return false;
    }
    arrival.address = Some(client);
    // Its client may be elsewhere.
    arrival.is_local &= client.ip().to_canonical().is_loopback();
    arrival.permit.count_for(client)
}

/// Agrees with a peer about the keys of TLS. `None`: the connection is over.
async fn greet(
    tls: TlsConfig,
    socket: Socket,
    turnstile: &Mutex<()>,
    peer: &Peer,
    gateway: &impl Gateway,
    due: Instant,
    stage: &mut watch::Receiver<Stage>,
) -> Option<TlsStream<Socket>> {
    let greeted = tokio::select! {
        greeted = timeout_at(due, tls.accept(socket, turnstile)) => greeted.ok()?,
        () = peer.hangup.notified() => return None,
        () = reach(stage, Stage::Stopping) => return None,
    };
    greeted.inspect_err(|error| gateway.handshake_failed(peer.address, error)).ok()
}

/// One connection, to its end; `gone` ends when the peer is, if that can be known.
async fn converse<G: Gateway>(
    stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
    peer: Peer,
    gone: impl Future<Output = ()>,
    app: App<G>,
    mut stage: watch::Receiver<Stage>,
) {
    let app = app.adjusted();
    let Options { half_sent, idle, .. } = *app.options;
    let timeouts = Timeouts { idle, head: half_sent, send: half_sent };
    let (permit, has_users) = (peer.permit.clone(), peer.offer.is_some());
    let hangup = Arc::clone(&peer.hangup);
    let activity = Arc::new(Activity::new());
    let stream = WatchedStream::new(stream, Arc::clone(&activity));
    let answerer = Answerer { app, peer, activity: Arc::clone(&activity) };
    let builder = builder();
    let service = service_fn(move |request| answerer.answer(request));
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection, gone);
    let (mut is_stopping, mut is_idle) = (false, false);
    loop {
        let is_stranger = has_users && !permit.has_entered();
        let timeouts = if is_stranger { timeouts.of_stranger() } else { timeouts };
        tokio::select! {
            // The connection first: it reads bytes that have come before a timeout ends it.
            biased;
            // How a connection ended is its peer's business: its requests were done or were not.
            _ = connection.as_mut() => return,
            () = gone.as_mut() => return,
            () = hangup.notified() => return,
            () = reach(&mut stage, Stage::Stopping), if !is_stopping => {
                is_stopping = true;
                connection.as_mut().graceful_shutdown();
            }
            overdue = activity.overdue(timeouts), if !is_idle => {
                if is_stranger && permit.has_entered() {
                    continue;
                }
                if overdue != Overdue::Idle {
                    return;
                }
                is_idle = true;
                connection.as_mut().graceful_shutdown();
            }
            // A peer that is gone without a word does not confirm that it has heard.
            () = sleep(GOODBYE), if is_idle => return,
        }
    }
}

/// How both versions are read.
fn builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    // `Activity` times the head, and the pause between requests. A client that sends no more may
    // still read.
    builder.http1().header_read_timeout(None).half_close(true);
    builder.http1().max_buf_size(HEAD_BYTES_MAX).max_headers(HEADERS_MAX);
    builder.http2().timer(TokioTimer::new()).max_concurrent_streams(STREAMS_MAX);
    builder.http2().max_header_list_size(HEAD_BYTES_MAX as u32);
    builder.http2().initial_stream_window_size(WINDOW_BYTES);
    builder.http2().initial_connection_window_size(WINDOW_BYTES);
    builder
}

/// Answers the requests of one connection.
struct Answerer<G: Gateway> {
    app: App<G>,
    peer: Peer,
    activity: Arc<Activity>,
}

impl<G: Gateway> Answerer<G> {
    fn answer(
        &self,
        request: Request<Incoming>,
    ) -> impl Future<Output = Result<Response<Pieces>, Infallible>> + use<G> {
        let open = self.activity.open(&self.app.open);
        let by_http2 = request.version() == Version::HTTP_2;
        let activity = by_http2.then(|| Arc::clone(&self.activity));
        // Apart: hyper keeps as much as the future takes until the answer is taken.
        let answer = open.is_admitted().then(|| {
            let (app, peer) = (self.app.clone(), self.peer.clone());
            Box::pin(async move { app.answer(request, peer).await })
        });
        async move {
            let answer = match answer {
                Some(answer) => answer.await,
                None => Problem::busy().answer(),
            };
            Ok(guarded(answer).map(|body| Pieces::new(body, activity, open)))
        }
    }
}

/// Ends when the server has come so far, or is gone.
async fn reach(stage: &mut watch::Receiver<Stage>, wanted: Stage) {
    // An error says that the server is gone, which is further than any stage.
    let _ = stage.wait_for(|stage| *stage >= wanted).await;
}

/// The time in which a proxy tells of its client and the peer and the server agree about keys, from
/// the accepted connection on.
const GREETING_SPAN_MAX: Duration = Duration::from_secs(10);

/// How long accepting rests when the system has no room.
const PAUSE: Duration = Duration::from_millis(100);

/// How long a peer of HTTP/2 has to hear that its idle connection ends.
const GOODBYE: Duration = Duration::from_secs(5);

/// Headers of a request by HTTP/1.1: a hundred properties, and the usual headers of clients.
const HEADERS_MAX: usize = 160;

/// Bytes of a request before its body. A connection by HTTP/1.1 keeps a buffer of this size once so
/// much came at once, of any kind.
const HEAD_BYTES_MAX: usize = 12 * 1024;

/// Requests that one connection may have open by HTTP/2.
const STREAMS_MAX: u32 = 100;

/// Bytes that may come by HTTP/2 on one connection before the server reads them: the protocol's own
/// default. A request that waits for room does not read.
const WINDOW_BYTES: u32 = 65_535;
